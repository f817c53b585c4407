#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Both sides of a fork keep their owners through copy on write.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work forker
start_record --tree
go
child=$(pgrep -P "$pid")
# The child speaks before it waits, and its stack is written to in between.
await grep -q "^State:.S" "/proc/$child/status"
await grep -q "^State:.S" "/proc/$pid/status"
stop_record
check
"$memprov" report "$trace" --format json >"$report"
python3 "$here/forker.py" "$report" "$pid" "$child" || fail "shared pages are wrong"

# Two processes: each row says whose it is, an id alone may be both's, ID@PID is one.
"$memprov" report "$trace" --rows 0 >"$dir/table"
grep -q "RESIDENT.* PROCESS .*OWNER" "$dir/table" || fail "the table names no process"
for p in "$pid" "$child"; do
	grep -q "forker ($p).*parent_map" "$dir/table" || fail "no row of parent_map in $p"
done
"$memprov" report "$trace" --by resident --format folded >"$dir/folded"
grep -q "^forker-$pid;.*;parent_map;" "$dir/folded" || fail "the root of a stack names no process"
id=$(python3 -c 'import json, sys
print(next(r["id"] for r in json.load(open(sys.argv[1]))["rows"]
           if "parent_map" in [f["function"] for f in r["origin"]["stack"]]))' "$report")
"$memprov" report "$trace" --why "$id" >"$dir/why"
[ "$(grep -c "^$id: .*forker" "$dir/why")" = 2 ] || fail "--why shows not both: $(cat "$dir/why")"
"$memprov" report "$trace" --why "$id@$child" >"$dir/why"
[ "$(grep -c "^$id: .*forker ($child)" "$dir/why")" = 1 ] || fail "--why ID@PID: $(cat "$dir/why")"
stop_work
