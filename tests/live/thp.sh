#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Huge pages whole, touched once, and partly unmapped.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
grep -q "\[never\]" /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null && skip "huge pages are off"
run thp

# However the pages came, one by one or huge: each was brought in by the function that touched it.
"$memprov" report "$trace" --owner fault --format json >"$report" || fail "report exits with $?"
python3 - "$report" "$oracle" <<'END' || fail "a huge page is not its fault's"
import json
import sys

rows = json.load(open(sys.argv[1], encoding="utf-8"))["rows"]
truths = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.startswith("{")]
wrong = 0
for truth in truths:
    got = sum(row["costs"]["resident"]["value"] for row in rows
              if row["origin"]["kind"] == "fault"
              and truth["owner"] in [f["function"] for f in row["origin"]["stack"]])
    good = got == truth["resident"]
    print(f"{'ok' if good else 'WRONG'} {truth['owner']}: resident {truth['resident']}, by fault {got}")
    wrong |= not good
sys.exit(wrong or not truths)
END
