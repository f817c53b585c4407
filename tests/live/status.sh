#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# On a terminal record tells what goes on; into a file it does not.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
command -v script >/dev/null || skip "needs script(1) for a terminal"

start_work grow
go
printf -v command '%q record -p %d -w 3s -o %q' "$memprov" "$pid" "$trace"
script -qec "$command" /dev/null </dev/null >"$dir/screen" || fail "record exits with $?"
kill -STOP "$pid"
rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
python3 - "$dir/screen" "$rss" <<'END' || fail "the status line is wrong"
import re
import sys

with open(sys.argv[1], encoding="utf-8", newline="") as f:
    screen = f.read()
assert "  ending: last picture, names of stacks\x1b[K\r\n" in screen, "the end is silent"
lines = re.findall(r"\r([0-9.]+) s  (\d+) events  lost (\d+)  (\d+) KiB  resident ([0-9.]+) MiB\x1b\[K",
                   screen)
if not lines:
    raise SystemExit(f"no status line in {screen!r}")
times = [float(line[0]) for line in lines]
assert times == sorted(times), times
# The target stood still: every picture is what the kernel says.
want = f"{int(sys.argv[2]) / 2**20:.2f}"
assert {line[4] for line in lines} == {want}, (lines, want)
assert all(int(line[3]) > 0 for line in lines), "the first picture is in the file"
print(f"ok    {len(lines)} lines, resident {want} MiB")
END
"$memprov" record -p "$pid" -w 1s -o "$trace" 2>"$dir/err"
! grep -q resident "$dir/err" || fail "a status line without a terminal"
stop_work
