#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What accessed bits say is what the workload touched and left alone, by object and by site; and once
# anything else may have changed them it is called a bound.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -e /proc/self/clear_refs ] || skip "needs /proc/PID/clear_refs"
name=memprov-access-$$
mount=$(awk '$0 ~ / - cgroup / && $NF ~ /(^|,)memory(,|$)/ { print $5; exit }' /proc/self/mountinfo)
[ -n "$mount" ] || mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
trap 'cleanup; rmdir "$mount/$name" 2>/dev/null || true' EXIT

# step WORD: a line to the workload; what it says up to "done" is added to the oracle.
step() {
	local line
	echo "$1" >&"$to"
	while read -r -t 60 -u "$from" line; do
		[ "$line" != "done" ] || return 0
		echo "$line" >>"$oracle"
	done
	fail "the workload did not finish"
}

judge() {
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 "$here/access.py" "$report" "$oracle" "$@" || fail "the report is wrong"
	rm -f "$trace"
	: >"$oracle"
}

# Reclaim in a cgroup of its own, of the cache of a file there: nothing that the workload has.
reclaim_elsewhere() {
	local group=$mount/$name before
	mkdir "$group" 2>/dev/null && [ -e "$group/memory.stat" ] || return 1
	before=$(awk '/^pgscan_file/ { print $2 }' /proc/vmstat)
	# Expanded by the shell that moves.
	# shellcheck disable=SC2016
	bash -c 'echo 0 >"$1/cgroup.procs" && exec dd if=/dev/zero of="$2" bs=1M count=8 status=none conv=fsync' \
		- "$group" "$dir/cache"
	if [ -e "$group/memory.force_empty" ]; then
		echo 0 >"$group/memory.force_empty" || true
	else
		echo 4M >"$group/memory.reclaim" || true
	fi
	rmdir "$group"
	[ "$(awk '/^pgscan_file/ { print $2 }' /proc/vmstat)" != "$before" ]
}

# Bytes of the mappings of this object or address that smaps calls referenced.
referenced() {
	awk -v what="$1" '/^[0-9a-f]+-/ { on = index($0, what) } on && /^Referenced:/ { n += $2 } END { print n + 0 }' \
		"/proc/$pid/smaps"
}

# A cycle has come and gone since the file had this size: its end is written when all is cleared.
is_cleared() {
	[ "$(stat -c %s "$trace")" -gt "$1" ] && [ "$(referenced memprov-rest)" = 0 ]
}

echo "# 48 of 64 MiB read, of 256"
start_work watched
start_record --access ptwalk
step read
stop_record
judge
stop_work

echo "# while reclaim runs"
start_work watched
start_record --access ptwalk
step read
if reclaim_elsewhere; then
	stop_record
	"$memprov" report "$trace" | grep -q "touched at least .* cold at most .* reclaim ran" ||
		fail "the table does not say at least"
	judge --doubt reclaim
else
	echo "note: no reclaim could be had in a cgroup"
	stop_record
fi
stop_work

echo "# by site, in cycles"
start_work watched
start_record --access ptwalk --every 2s
: >"$oracle"
step map
await is_cleared "$(stat -c %s "$trace")" || fail "no cycle in 30 s"
await is_cleared "$(stat -c %s "$trace")" || fail "no cycle in 30 s"
step again
stop_record
judge --inferred
stop_work

echo "# two readers of one process, and periods that are too short"
start_work watched
start_record --access ptwalk
"$memprov" record -p "$pid" --access ptwalk -w 100ms -o "$dir/second" 2>"$dir/err" && got=0 || got=$?
[ "$got" = 3 ] && grep -q "another memprov reads" "$dir/err" || fail "a second reader: $got, $(cat "$dir/err")"
stop_record
"$memprov" record -p "$pid" --access ptwalk --every 1us -w 1s -o "$dir/second" 2>"$dir/err" && got=0 || got=$?
[ "$got" = 1 ] && grep -q "at least" "$dir/err" || fail "--every 1us: $got, $(cat "$dir/err")"
stop_work
