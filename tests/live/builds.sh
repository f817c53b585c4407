#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The builds of the BPF object for older and newer kernels, on this one: what they say is as true.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -r /sys/kernel/tracing/events/raw_syscalls/sys_enter/id ] || skip "needs tracefs on /sys/kernel/tracing"
for object in plain preemptible basic; do
	MEMPROV_BUILD=$object "$memprov" record -w 10ms -o "$dir/$object" -- true 2>"$dir/record.err" || {
		! grep -q "cannot load\|refused" "$dir/record.err" || {
			echo "note: this kernel does not take $object"
			continue
		}
		fail "record exits with $?"
	}
	MEMPROV_BUILD=$object "$here/../../scripts/truth" --build "$build" --scenario direct --scenario reuse \
		--scenario fork_cow --scenario threads >"$dir/table" || {
		cat "$dir/table"
		fail "$object is wrong"
	}
	echo "ok    $object: $(tail -n 1 "$dir/table")"
done
says 1 "memprov: record: cannot load or attach BPF programs: No such file or directory; -vv shows libbpf's words" \
	env MEMPROV_BUILD=none "$memprov" record -w 10ms -o "$dir/none" -- true
