#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A flight recorder writes nothing until there is a reason; its file names what that was: a kill at a
# cgroup's limit, with who grew, a size, a request.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
mount=$(awk '$0 ~ / - cgroup / && $NF ~ /(^|,)memory(,|$)/ { print $5; exit }' /proc/self/mountinfo)
[ -n "$mount" ] || mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
[ -n "$mount" ] || skip "needs a cgroup hierarchy"
group=$mount/memprov-flight-$$
drop_group() {
	local i
	for ((i = 0; i < 50; i++)); do
		! rmdir "$group" 2>/dev/null || return 0
		[ -d "$group" ] || return 0
		sleep 0.1
	done
	echo "note: $group is left"
}
trap 'cleanup; drop_group' EXIT
mkdir "$group" 2>/dev/null || skip "cannot make a cgroup below $mount"
[ -e "$group/memory.stat" ] || skip "no memory controller below $mount"
limit=$((40 << 20))
if [ -e "$group/memory.limit_in_bytes" ]; then
	echo "$limit" >"$group/memory.limit_in_bytes"
	# Swap would put the kill off.
	echo "$limit" >"$group/memory.memsw.limit_in_bytes" 2>/dev/null || true
else
	echo "$limit" >"$group/memory.max"
	echo 0 >"$group/memory.swap.max" 2>/dev/null || true
fi

judge() { # KIND [TRUTH...]
	"$memprov" report "$trace" --format json >"$report" || [ $? = 3 ] || fail "report fails"
	"$memprov" report "$trace" >"$dir/table" || [ $? = 3 ] || fail "report fails"
	python3 "$here/flight.py" "$report" "$dir/table" "$@" || fail "the report is wrong"
}

# The command's own shell expands them.
# shellcheck disable=SC2016
start_command bash -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - "$group" "$build/work/grow"
start_record --ring 4M --trigger oom
[ ! -e "$trace" ] || fail "there is a file already"
go
kill -USR2 "$recorder"
await [ -e "$trace" ] || fail "SIGUSR2 gives no file"
written() { "$memprov" report "$trace" --format json 2>/dev/null | grep -q '"complete": true'; }
await written || fail "the file of SIGUSR2 is not complete"
held=$(sed -n 's/.*"resident":\([0-9]*\).*/\1/p' "$oracle")
judge signal --grown "$held"

# Until it is gone.
trap '' PIPE
while kill -0 "$recorder" 2>/dev/null; do
	echo go >&"$to" 2>/dev/null || break
	read -r -t 10 -u "$from" _ || break
done
status=0
wait "$recorder" || status=$?
[ "$status" = 0 ] || fail "record exits with $status"
pids=("${pids[0]}")
judge oom --pid "$pid" --limit "$limit" --group "$(basename "$group")" --held "$held"
exec {from}<&- {to}>&-
wait "${pids[0]}" 2>/dev/null || true
pids=()

echo "# a size"
start_work grow
start_record --trigger "rss>6M"
trap '' PIPE
while kill -0 "$recorder" 2>/dev/null; do
	go
done
status=0
wait "$recorder" || status=$?
[ "$status" = 0 ] || fail "record exits with $status"
pids=("${pids[0]}")
judge rss --limit $((6 << 20))
stop_work

echo "# what is none"
for bad in "rss" "rss>" "rss>0" "rss>2X" "psi:most>10%" "psi:some>10" "psi:some>101%" "cgroup>90" \
	"refault>10" "oom>1" "" "psi:some>10%/1x"; do
	status=0
	"$memprov" record --trigger "$bad" -o "$trace" -- true 2>"$dir/err" || status=$?
	[ "$status" = 2 ] && [ "$(head -1 "$dir/err")" = "memprov: record: --trigger $bad: not a trigger; try psi:some>10%/1s, rss>2G, cgroup>90%, refault>1000/s or oom" ] ||
		fail "--trigger $bad gives $status: $(head -1 "$dir/err")"
done
