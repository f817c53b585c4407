#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pictures of a heap that grows while it is listed: never more than the workload ever held.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work breathe
env --default-signal=INT "$memprov" top -p "$pid" -d 0.1 --bytes --rows 0 >"$dir/tables" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await grep -q OWNER "$dir/tables" || fail "top prints nothing"
go
kill -INT "$recorder"
wait "$recorder" || fail "top exits with $?"
unset 'pids[-1]'
stop_work
python3 - "$dir/tables" "$oracle" <<'END' || fail "a table has more than there ever was"
import json
import sys

with open(sys.argv[2], encoding="utf-8") as f:
    peak = json.loads(f.readline())["peak"]
with open(sys.argv[1], encoding="utf-8") as f:
    tables = f.read().split("\n\n")
most = wrong = 0
for table in tables:
    rows = [line.split() for line in table.splitlines() if "breathe" in line and "(brk)" in line]
    held = sum(int(row[0].rstrip("?")) for row in rows)
    most = max(most, held)
    wrong += held > peak
print(f"{len(tables)} tables, at most {most} of {peak} bytes")
raise SystemExit(wrong or not most)
END
