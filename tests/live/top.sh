#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# top: its tables show what a growing workload says it holds, and it ends as record does.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
tables=$dir/tables

# start_top OPTION...: into $tables.
start_top() {
	env --default-signal=INT "$memprov" top "$@" >"$tables" 2>"$dir/record.err" &
	recorder=$!
	pids+=("$recorder")
}

# end_top STATUS: waits for it.
end_top() {
	local status=0
	gone() { ! kill -0 "$recorder" 2>/dev/null; }
	await gone || fail "top does not end"
	wait "$recorder" || status=$?
	unset 'pids[-1]'
	[ "$status" = "$1" ] || fail "top exits with $status instead of $1"
}

# What the workload's function has in the last table, by column: exact bytes or a word.
shown() {
	python3 - "$tables" <<'END'
import sys

last = [""]
for line in open(sys.argv[1], encoding="utf-8"):
    last = [line] if "providers" in line else last + [line]
rows = [line.split() for line in last if "grow_step" in line]
# The number, without the mark of a grade.
print(*(sum(int(r[c]) for r in rows) if all(r[c].lstrip("+").isdigit() for r in rows) else "?"
        for c in (0, 1, 2)))
END
}

said() {
	python3 - "$oracle" <<'END'
import json, sys
t = json.loads(open(sys.argv[1], encoding="utf-8").readlines()[-1])
print(t["resident"], t["resident"], t["reserved"])
END
}

agrees() {
	[ "$(shown)" = "$(said)" ] || ! kill -0 "$recorder" 2>/dev/null
}

has_table() {
	grep -q OWNER "$tables"
}

# A target that grows while it is watched, until it is killed.
start_work grow
start_top -p "$pid" -d 0.3 --bytes
await has_table || fail "top prints nothing"
states=(0)
for step in 1 2 3; do
	go
	await agrees || true
	[ "$(shown)" = "$(said)" ] || fail "step $step: top shows $(shown), the workload says $(said)"
	echo "ok    step $step: $(said)"
	states+=("$(said | cut -d' ' -f1)")
done
stop_work
end_top 0
[ ! -s "$dir/record.err" ] || fail "top says something"
echo "ok    ends with its target"

# Every table shows a state that was, residual 0.
python3 - "$tables" "${states[@]}" <<'END' || fail "a table is wrong"
import sys

states = {int(word) for word in sys.argv[2:]}
tables = open(sys.argv[1], encoding="utf-8").read().split("\n\n")
before = 0
for table in tables:
    rows = [line.split() for line in table.splitlines() if "grow_step" in line]
    held = sum(int(row[0].rstrip("?")) for row in rows)
    exact = all(row[0].isdigit() for row in rows)
    # A picture may come in the middle of a step and show what was touched by then: no less than
    # the table before, and less than the workload held at the end.
    if exact and held not in states and not before <= held < max(states):
        raise SystemExit(f"{held} exact behind {before} is none of {sorted(states)}")
    before = held if exact else before
print(f"ok    {len(tables)} tables, each with what the workload held")
END

# --batch N prints N tables and leaves the target alone.
start_work grow
start_top -p "$pid" -d 0.2 --batch 3
end_top 0
[ "$(grep -c OWNER "$tables")" = 3 ] || fail "--batch 3 prints $(grep -c OWNER "$tables") tables"
kill -0 "$pid" || fail "the target is gone"
grep -q "memprov used [0-9.]*% of a core" "$tables" || fail "top does not say what it costs"
echo "ok    --batch 3"

# Ctrl-C.
start_top -p "$pid" -d 0.2
await has_table || fail "top prints nothing"
kill -INT "$recorder"
end_top 0
echo "ok    SIGINT"

# A reader that has had enough.
got=0
timeout 60 "$memprov" top -p "$pid" -d 0.2 2>"$dir/err" | head -n 1 >/dev/null || got=${PIPESTATUS[0]}
[ "$got" = 0 ] || fail "top | head: top exits with $got"
[ ! -s "$dir/err" ] || fail "top | head: $(cat "$dir/err")"
echo "ok    top | head"

# A recorded trace: what report prints.
start_record
go
stop_record
for by in resident reserved faults; do
	"$memprov" report --format table --by "$by" --bytes "$trace" >"$dir/a"
	"$memprov" top -i "$trace" --by "$by" --bytes --batch 1 >"$dir/b"
	cmp "$dir/a" "$dir/b" || fail "top -i is not what report prints"
done
echo "ok    -i is report"
stop_work

# CMD's own status; a command that is not there; usage.
expect() {
	local want=$1 got=0
	shift
	timeout 60 "$memprov" top "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
	[ "$got" = "$want" ] || fail "top $*: exit $got instead of $want: $(cat "$dir/err")"
	echo "ok    exit $want: top $*"
}
expect 7 -d 0.2 -- sh -c "sleep 1; exit 7"
grep -q "^sh (" "$dir/out" || fail "no table of a command that ended"
expect 127 -- /nonexistent
expect 0 --batch 1 -d 0.2 -- sleep 2
expect 2
expect 2 --batch 0 -p 1
expect 2 --batch x -p 1
expect 2 -d 0 -p 1
expect 2 -p 1 -i "$trace"
expect 1 -i /etc/passwd
expect 1 --by nosuch -p 1
