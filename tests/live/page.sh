#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A page with 50,000 stacks in a browser: its size, no complaint, and what is found in it.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

command -v chromium >/dev/null || skip "needs chromium"
stacks=50000
"$build/bench/page" $stacks >"$dir/page.html" || fail "no page"
[ "$(stat -c %s "$dir/page.html")" -lt 20000000 ] || fail "the page has $(stat -c %s "$dir/page.html") bytes"

# A reader at work: searches one row, takes the other owners, another column.
python3 "$here/../bench/page.py" "$dir/page.html" "$dir/worked.html"
timeout 300 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir/browser" --enable-logging=stderr \
	--virtual-time-budget=20000 --dump-dom "file://$dir/worked.html" >"$dir/dom" 2>"$dir/err" || fail "chromium: $(tail -3 "$dir/err")"
! grep CONSOLE "$dir/err" || fail "the page complains"
python3 - "$dir/dom" $stacks <<'END' || fail "the page is wrong in a browser"
import html
import json
import re
import sys

dom = html.unescape(open(sys.argv[1], encoding="utf-8").read())
n = int(sys.argv[2])
work = json.loads(re.search(r'<pre id="work">(.*?)</pre>', dom, re.S)[1])
total = sum(i % 1000 + 1 for i in range(n)) * 4096
row = (12345 % 1000 + 1) * 4096
assert work["first"] == f"resident: {total / 2**30:.2f} GiB in {n} rows", work
assert work["found"].endswith(f"; found {row / 2**20:.2f} MiB in 1"), work
assert work["rows"] == 1 and work["owner"] == work["first"], work
assert work["column"].startswith("reserved: "), work
print("ok   ", n, "stacks")
END
