#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The adapter that a command preloads. Each call announced: what lives is exact, by the program's own
# shadow, under every allocator, in children and threads. Sampled: the truth is where the estimate
# says. Where it cannot be it says so, and what it is in runs as ever.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

end_and_report() {
	end_command 0
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
}

judge() {
	python3 "$here/heap.py" "$report" "$oracle" --announced --columns reserved,live --exact "$@" ||
		fail "the report is wrong"
}

library() {
	{ PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null || true; } | awk -v name="$1" '$1 == name && !n++ { print $NF }'
}

# Where a probe is the code is not what the file has.
code_is_the_files() {
	python3 - "$1" <<'END'
import sys

pid = sys.argv[1]
with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
    lines = [line.split() for line in maps if "libmemprov-alloc" in line and "r-xp" in line]
    for addresses, _, offset, _, _, path in lines:
        start, end = (int(x, 16) for x in addresses.split("-"))
        memory.seek(start)
        with open(path, "rb") as f:
            f.seek(int(offset, 16))
            code = f.read(end - start)
        if memory.read(end - start)[:len(code)] != code:
            sys.exit(1)
sys.exit(0 if lines else 1)
END
}

every=(--alloc adapter --sample-bytes 1)

echo "# each call, and a child's"
record_command "${every[@]}" -- "$build/work/heap" fork
go
cp "$oracle" "$dir/parent"
go
cat "$dir/parent" >>"$oracle"
end_and_report
judge
grep -q '"site":"in_child","reserved":45000' "$oracle" || fail "there was no child"

for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
	lib=$(library "$name")
	if [ -z "$lib" ]; then
		echo "note: no $name: not judged"
		continue
	fi
	for work in heap newdel; do
		# Its operator ends the program where it should throw.
		[ "$name $work" != "libmimalloc.so.2 newdel" ] || continue
		echo "# $name, $work"
		LD_PRELOAD=$lib record_command "${every[@]}" -- "$build/work/$work"
		go
		end_and_report
		judge
	done
done

echo "# C++"
record_command "${every[@]}" -- "$build/work/newdel"
go
end_and_report
judge

echo "# a thousand children that end at once, and one in its parent's memory"
record_command "${every[@]}" -- "$build/work/brief" 1000
go
end_and_report
judge

echo "# sampled, under what it runs with"
for lib in "" $(library libjemalloc.so.2); do
	LD_PRELOAD=$lib record_command --sample-bytes 32K -- "$build/work/sampled"
	go
	end_and_report
	python3 "$here/sampled.py" "$report" "$oracle" 32768 || fail "the estimates are wrong"
done

echo "# a program that has it already is attached to"
adapter=$(echo /run/memprov/libmemprov-alloc-*.so)
[ -e "$adapter" ] || adapter=$build/libmemprov-alloc.so
start_command env MEMPROV_SAMPLE_BYTES=32768 LD_PRELOAD="$adapter" "$build/work/sampled"
rm -f "$trace" "$trace.old"
start_record
go
stop_record
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
python3 "$here/sampled.py" "$report" "$oracle" 32768 || fail "the estimates are wrong"
stop_work

echo "# where it cannot be"
cat >"$dir/hello.c" <<'END'
#include <stdlib.h>
int main(void)
{
	return malloc(1) == 0;
}
END
gcc -static -o "$dir/static" "$dir/hello.c"
says 1 "memprov: record: --alloc adapter: $dir/static: it is static: nothing can be preloaded; --alloc uprobe or map do without" \
	"$memprov" record -o "$trace" --alloc adapter -- "$dir/static"
"$memprov" record -o "$trace" -- "$dir/static" 2>"$dir/err" || fail "record exits with $?"
grep -q "allocations not recorded: $dir/static: it is static: nothing can be preloaded: owners are mappings" "$dir/err" ||
	fail "record does not say that it has no adapter: $(cat "$dir/err")"
says 1 "memprov: record: --alloc adapter: it is there for a command that record starts: -- CMD; --alloc uprobe or map do without" \
	"$memprov" record -o "$trace" --alloc adapter -p $$
"$memprov" record -o "$trace" -- env -i "$dir/static" 2>"$dir/err" || fail "record exits with $?"
grep -q "1 of 2 programs did not load the adapter" "$dir/err" || fail "record does not say who has no adapter: $(cat "$dir/err")"

if command -v musl-gcc >/dev/null; then
	echo "# musl"
	musl-gcc -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -I"$here/../work" -o "$dir/sampled" "$here/../work/sampled.c" -pthread
	record_command --sample-bytes 32K -- "$dir/sampled"
	go
	end_and_report
	python3 "$here/sampled.py" "$report" "$oracle" 32768 || fail "the estimates are wrong"
fi

echo "# a recorder that is killed leaves no probe, and the command goes on"
start_command env --default-signal=INT "$memprov" record -o "$trace" --sample-bytes 4K -- "$build/work/sampled"
recorder=$WORK_PID
command_pid=$pid
! code_is_the_files "$command_pid" || fail "there is no probe to be left"
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null || true
unset 'pids[-1]'
pids+=("$command_pid")
go
[ "$(wc -l <"$oracle")" = 6 ] || fail "the command did not go on"
await code_is_the_files "$command_pid" || fail "a probe is left in the command"
kill "$command_pid"
