#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A cgroup's rows are what the workload says it made the group pay for, and add up to the kernel's
# counter; pages that a process outside maps are found; a group is found by all its names.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -r /proc/kpagecgroup ] || skip "needs /proc/kpagecgroup"

# v1 with the memory controller, else v2.
mount=$(awk '$0 ~ / - cgroup / && $NF ~ /(^|,)memory(,|$)/ { print $5; exit }' /proc/self/mountinfo)
[ -n "$mount" ] || mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
[ -n "$mount" ] || skip "needs a cgroup hierarchy"
name=memprov-test-$$
group=$mount/$name
id=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')

drop_groups() {
	local i
	for ((i = 0; i < 50; i++)); do
		find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
		[ -d "$group" ] || return 0
		sleep 0.1
	done
	echo "note: $group is left"
}
trap 'cleanup; drop_groups' EXIT

mkdir "$group" 2>/dev/null || skip "cannot make a cgroup below $mount"
[ -e "$group/memory.stat" ] || skip "no memory controller below $mount"
if [ -e "$group/memory.limit_in_bytes" ]; then
	echo 256M >"$group/memory.limit_in_bytes"
else
	echo 256M >"$group/memory.max"
fi

# in_group FOLDER COMMAND...: everything it does after its exec is charged to that group.
in_group() {
	# The command's own shell expands them.
	# shellcheck disable=SC2016
	start_command bash -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - "$@"
}

record_group() { # SPEC [OPTION...]
	rm -f "$trace"
	"$memprov" record --cgroup "$@" -o "$trace" 2>"$dir/record.err" || fail "record exits with $?"
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
}

judge() {
	python3 "$here/cgroup.py" "$report" "$@" || fail "the report is wrong"
}

# A machine that reclaims cold pages by itself is given five tries to stand still.
judge_still() { # SPEC [OPTION...]
	local try status moving=()
	for try in 1 2 3 4 5; do
		[ "$try" != 5 ] || moving=(--moving)
		python3 "$here/cgroup.py" "$report" --take --group "$group" \
			--oracle "$dir/payer" --pid "$payer" >"$dir/before"
		record_group "$1" -w 500ms
		status=0
		python3 "$here/cgroup.py" "$report" --group "$group" --oracle "$dir/payer" \
			--pid "$payer" --cache "$cache" --still "$dir/before" "${moving[@]}" \
			"${@:2}" || status=$?
		[ "$status" != 0 ] || return 0
		[ "$status" = 75 ] || fail "the report is wrong"
	done
}

stop_last() {
	kill -KILL "${pids[-1]}"
	wait "${pids[-1]}" 2>/dev/null || true
	unset 'pids[-1]'
}

expect_error() { # TEXT SPEC
	local got=0
	"$memprov" record --cgroup "$2" -w 1s -o "$trace" 2>"$dir/err" || got=$?
	[ "$got" = 1 ] || fail "--cgroup $2: exit $got instead of 1"
	[ "$(wc -l <"$dir/err")" = 1 ] || fail "--cgroup $2: more than one line of error"
	grep -qF -- "$1" "$dir/err" || fail "--cgroup $2: says: $(cat "$dir/err")"
	echo "ok    $(cat "$dir/err")"
}

echo "# everything at once, standing still"
in_group "$group" "$build/work/charges" /var/tmp
# The kernel brings memory.stat up to date every two seconds.
sleep 3
# What the program's start brought into the cache: all but what it maps of that.
cache=$(awk '$1 == "total_cache" || $1 == "file" { n += $2 }
	$1 == "total_mapped_file" || $1 == "file_mapped" { n -= $2 } END { print n }' \
	"$group/memory.stat")
go
payer=$pid
cp "$oracle" "$dir/payer"
kill -STOP "$payer"
judge_still "$name"
judge_still "$group"
judge_still "of:$payer"
"$memprov" report "$trace" >"$dir/table"
"$memprov" diff "$trace" "$trace" >"$dir/out" || fail "diff exits with $?"
grep -q "^charged$" "$dir/out" || fail "diff of a cgroup shows $(head -n 1 "$dir/out")"
awk "length > 120 && !/OWNER/ && !done { print; bad = 1 } /OWNER/ { done = 1 } END { exit bad }" "$dir/table" || fail "a line of the header is long"
grep -qE "cgroup /?$name \(v[12], 1 group\): charged .* of limit 256.00 MiB, high unlimited" "$dir/table" ||
	fail "the header lacks the group: $(grep cgroup "$dir/table")"
"$memprov" report "$trace" --by charged --format folded | grep -E ';\[memcg\];.* [0-9]+$' >/dev/null ||
	fail "folded stacks lack the rows of kind memcg"

echo "# top of it: the charge is what the kernel says at the time, with rows for what is in no process"
charge() {
	cat "$group/memory.usage_in_bytes" 2>/dev/null || cat "$group/memory.current"
}
# The charge in the last whole table.
charge_shown() {
	sed -n 's/.*: charged \([0-9]*\) of limit .*/\1/p' "$dir/tables" | tail -n 1
}
in_group "$group" "$build/work/grow"
go
env --default-signal=INT "$memprov" top --cgroup "$group" -d 0.3 --bytes >"$dir/tables" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await grep -q OWNER "$dir/tables" || fail "top prints nothing"
kept=$(charge)
go
# A cpu charges up to 64 pages in advance; the second step of grow is 1013 - 23 pages.
want=$((kept + (990 - 64 * $(nproc)) * 4096))
follows() { [ "$(charge_shown)" -ge "$want" ]; }
await follows || fail "top shows $(charge_shown), the group grew from $kept to $(charge)"
kill -INT "$recorder"
wait "$recorder" || fail "top exits with $?"
unset 'pids[-1]'
grep -qE "^ +[0-9]+. .*\(memcg\)" "$dir/tables" || fail "top has no rows of kind memcg"
grep -qE "^ +CHARGED" "$dir/tables" || fail "top does not sort by charged"
! grep -q "gone\|at the start;" "$dir/tables" || fail "top says the group is gone"
echo "ok    charged $kept, then $(charge_shown)"
stop_last

echo "# a process that left the group: its pages are still charged here"
in_group "$group" "$build/work/pages"
go
kill -STOP "$pid"
outside=$(awk '$1 == "Anonymous:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
echo "$pid" >"$mount/cgroup.procs"
judge_still "$group" --outside "$outside"
kill -CONT "$pid"
stop_last

echo "# a process that came in later; a group below"
mkdir "$group/below"
start_command "$build/work/pages"
go
"$memprov" record --cgroup "$group" -w 4s -o "$trace" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await is_recording || fail "record says nothing for 30 s"
echo "$pid" >"$group/below/cgroup.procs"
wait "$recorder" || fail "record exits with $?"
unset 'pids[-1]'
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
judge --group "$group" --adopted "$pid" --oracle "$oracle"
stop_last

echo "# by a container's id"
mkdir "$group/docker-$id.scope" "$group/docker-conmon-$id.scope"
# Who wrote a file has gone, and its page cache is charged on.
bash -c 'echo 0 >"$1/cgroup.procs" && exec dd if=/dev/zero of="$2" bs=4k count=509 status=none' - \
	"$group/docker-$id.scope" "$dir/left"
sync "$dir/left"
record_group "${id:0:12}" -w 200ms
python3 - "$report" <<'END' || fail "a group without processes"
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
rows = {r["origin"]["name"]: r["costs"]["charged"] for r in report["rows"]}
assert not report["recording"]["targets"] and all(r["origin"]["kind"] == "memcg" for r in report["rows"])
cache = rows["cache (not mapped)"]["value"]
print("ok    page cache of a group without processes", cache, "of", report["check"]["charged"]["kernel"])
assert 509 * 4096 <= cache <= 509 * 4096 + (1 << 20), rows
assert report["check"]["charged"]["status"] == "ok", report["check"]["charged"]
END
rm "$dir/left"
in_group "$group/docker-$id.scope" "$build/work/pages"
record_group "${id:0:12}" -w 200ms
judge --path "$name/docker-$id.scope"
mkdir "$group/cri-containerd-$id.scope"
expect_error "more than one group has this id" "$id"
stop_last
expect_error "no group below $mount has this id" "$(tr '0-9a-f' '1-9a-f0' <<<"$id")"
expect_error "no such group below $mount" "$name-nosuch"
expect_error "no memory cgroup" /tmp
expect_error "not a process id" of:x
expect_error "no process 4194304" of:4194304

if "$memprov" record --cgroup "$mount" -w 200ms -o "$trace" 2>"$dir/record.err"; then
	echo "# the whole machine has no counter"
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	judge --unjudged "no counter"
fi

start_work pages
"$memprov" record -p "$pid" -w 200ms -o "$trace" 2>"$dir/record.err" || fail "record exits with $?"
! "$memprov" report "$trace" --by charged --format table >"$dir/out" 2>"$dir/err" ||
	fail "charged without a cgroup is no error"
grep -q "no cgroup was recorded" "$dir/err" || fail "charged is absent: $(cat "$dir/err")"
