#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Bytes of a page belong to who allocated them, as the workload's own shadow says: live, freed and
# reserved of each function, exact where nothing was missed; of the allocators that are installed.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

# judge STATUS OPTION...
judge() {
	local status=0
	"$memprov" report "$trace" --format json >"$report" || status=$?
	[ "$status" = "$1" ] || fail "report exits with $status, not $1"
	shift
	python3 "$here/heap.py" "$report" "$oracle" "$@" || fail "the report is wrong"
}

echo "# from its start"
record_command --alloc uprobe -- "$build/work/heap"
go
end_command 0
judge 0 --exact

echo "# attached to: only what was there before it is in doubt"
start_work heap
rm -f "$trace" "$trace.old"
start_record --alloc uprobe
grep -q "probes on the allocator of heap ($pid): an allocation and its free take about" "$dir/record.err" ||
	fail "record does not say what the probes cost"
go
stop_record
judge 0 --exact --inferred freed
stop_work

library() {
	{ PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null || true; } | awk -v name="$1" '$1 == name && !n++ { print $NF }'
}

# What another allocator gave back to the kernel is not known to the workload.
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	lib=$(library "$name")
	if [ -z "$lib" ]; then
		echo "note: no $name: not judged"
		continue
	fi
	echo "# $name, attached to"
	start_command env LD_PRELOAD="$lib" "$build/work/heap"
	rm -f "$trace" "$trace.old"
	start_record --alloc uprobe
	go
	stop_record
	judge 0 --columns reserved,live --exact
	stop_work
done

echo "# C++, with an operator that throws"
record_command --alloc uprobe -- "$build/work/newdel"
go
end_command 0
judge 0 --columns reserved,live --exact

lib=$(library libtcmalloc_minimal.so.4)
if [ -n "$lib" ]; then
	echo "# C++ with operators of the allocator's own: new is not seen, and throws as ever"
	start_command env LD_PRELOAD="$lib" "$build/work/newdel"
	rm -f "$trace" "$trace.old"
	start_record --alloc uprobe
	go
	kill -INT "$recorder"
	wait "$recorder" && fail "what is not seen is no loss"
	unset 'pids[-1]'
	"$memprov" report "$trace" --format json >"$report" || [ $? = 3 ]
	python3 - "$report" <<'END' || fail "what may be anybody's is called exact"
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    report = json.load(f)
# Two in each turn of plain_new and of aligned_new, and the one that throws; the rest is nothrow.
unseen = report["recording"]["loss"]["causes"].get("allocations_unseen")
if unseen != 500 + 500 + 300 + 300 + 1:
    sys.exit(f"{unseen} calls of new were not seen")
for row in report["rows"]:
    for column in "live", "freed", "slack":
        if row["origin"]["kind"] in ("malloc", "mmap", "brk") and row["costs"][column].get("exact"):
            sys.exit(f"{row['origin']['kind']} {column} {row['costs'][column]}")
END
	stop_work
fi

echo "# a child: what was allocated before its probes were there is inferred"
record_command --alloc uprobe -- "$build/work/heap" fork
go
sleep 2
cp "$oracle" "$dir/parent"
go
cat "$dir/parent" >>"$oracle"
end_command 3
judge 3
grep -q '"site":"in_child","reserved":45000' "$oracle" || fail "there was no child"
