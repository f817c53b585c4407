#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Nothing of memprov stays in the kernel: not after an end, nor after a kill.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
PATH=$PATH:/usr/sbin

# Ids of programs and links that a memprov process holds.
held() {
	bpftool -j "$1" show | python3 -c '
import json, sys
for item in json.load(sys.stdin):
    if any(p["comm"].startswith("memprov") for p in item.get("pids", [])):
        print(item["id"])'
}

probes() {
	sort /sys/kernel/tracing/uprobe_events /sys/kernel/tracing/kprobe_events 2>/dev/null || true
}

# By name; those of another test that runs at the same time were there before.
memprov_cgroups() {
	find /sys/fs/cgroup -type d -name "*memprov*" 2>/dev/null | sort
}

gone() {
	local kind id
	for kind in prog link; do
		[ -z "$(held "$kind")" ] || return 1
		while read -r id; do
			! bpftool "$kind" show id "$id" >/dev/null 2>&1 || return 1
		done <"$dir/$kind.ids"
		! bpftool "$kind" show | grep -E "name memprov" || return 1
	done
}

# after WHAT: looks until the kernel has freed what the recorder held.
after() {
	await gone || fail "after $1: BPF programs or links are left"
	[ "$(probes)" = "$before" ] || fail "after $1: probe events are left"
	! grep memprov /proc/swaps || fail "after $1: swap is left"
	[ -z "$(comm -13 <(echo "$cgroups") <(memprov_cgroups))" ] || fail "after $1: a cgroup is left"
	echo "ok    clean after $1"
}

begin() {
	rm -f "$trace" "$trace.old"
	start_work mapops
	start_record
	held prog >"$dir/prog.ids"
	held link >"$dir/link.ids"
	[ -s "$dir/prog.ids" ] || echo "note: bpftool names no program of memprov while it records"
}

before=$(probes)
cgroups=$(memprov_cgroups)

begin
go
stop_record
stop_work
after "SIGINT"

begin
go
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null || true
unset "pids[-1]"
after "SIGKILL"
"$memprov" report "$trace" --format json >"$report" || fail "the killed recorder left no readable trace"
stop_work

begin
kill -KILL "$pid"
ended() {
	! kill -0 "$recorder" 2>/dev/null
}
await ended || fail "record outlives its target"
after "the end of the target"
