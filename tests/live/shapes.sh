#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What was there before the recording is classed by its shape, with the allocators and runtimes
# themselves: a class has at least the bytes its workload wrote, a decoy is in none.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

# judge 'WHAT+WHAT=CLASS+CLASS'...: attaches late, then compares with the workload's bytes.
judge() {
	rm -f "$trace" "$trace.old"
	start_record
	stop_record
	go
	rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
	"$memprov" report "$trace" --owner alloc --format json >"$report" || fail "report exits with $?"
	python3 "$here/shapes.py" "$report" "$oracle" "$@" || fail "the classes are wrong"
	stop_work
}

library() {
	ldconfig -p | awk -v name="$1" '$1 == name && !n++ { print $NF }'
}

# Where no class is meant the bytes must be in anonymous memory.
common=('stack=thread stack (by shape)' 'bss=bss (by shape)' 'decoy=anonymous memory')
none='=jemalloc (by shape)+tcmalloc heap (by shape)+mimalloc (by shape)'

echo "# glibc"
start_work alloc
judge 'small=glibc main heap (by shape)+glibc arena (by shape)' 'large+decoy=anonymous memory' \
	"${common[@]}" "$none"

for name in jemalloc:libjemalloc.so.2 'tcmalloc heap:libtcmalloc_minimal.so.4' mimalloc:libmimalloc.so.2; do
	lib=$(library "${name#*:}")
	if [ -z "$lib" ]; then
		echo "note: no ${name#*:}: not judged"
		continue
	fi
	echo "# ${name#*:}"
	start_command env LD_PRELOAD="$lib" "$build/work/alloc"
	judge "small+large=${name%:*} (by shape)" "${common[@]}" \
		'=glibc main heap (by shape)+glibc arena (by shape)'
done

# The library is there, malloc is glibc's: nobody is named for what could be either's.
lib=$(library libmimalloc.so.2)
if [ -n "$lib" ]; then
	echo "# glibc with libmimalloc beside it"
	start_work alloc "$lib"
	judge 'large+decoy=anonymous memory' "$none" \
		'=glibc main heap (by shape)+glibc arena (by shape)'
fi

# The closed 64 MiB lie below all others, so the arenas below them merge with nothing else.
echo "# CPython"
start_command python3 -uc 'import mmap, os
kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
keep = [None] * 80000
fill = [bytes(400) for i in range(12000)]
wall = mmap.mmap(-1, 64 << 20, flags=kind, prot=0)
for i in range(len(keep)):
    keep[i] = bytes(400)
wall2 = mmap.mmap(-1, 64 << 20, flags=kind, prot=0)
decoy = mmap.mmap(-1, (12 << 20) + 7 * 4096, flags=kind)
decoy.write(bytes([1]) * len(decoy))
print("ready", os.getpid())
input()
print("{\"objects\":%d,\"decoy\":%d}" % (400 * len(keep), len(decoy)))
print("done")
input()'
judge 'objects=CPython arenas (by shape)' 'decoy=anonymous memory'

if command -v fzf >/dev/null; then
	echo "# Go"
	# All but what may still be in the pipe was read, and is kept until the input ends.
	mkfifo "$dir/fifo"
	fzf --filter nothing-like-it <"$dir/fifo" >/dev/null &
	pid=$!
	pids+=("$pid")
	exec {to}>"$dir/fifo" {from}</dev/null
	seq -f 'line %.0f of what it keeps in memory until its input ends' 300000 >"$dir/lines"
	cat "$dir/lines" >&"$to"
	rm -f "$trace" "$trace.old"
	start_record
	stop_record
	echo "{\"lines\":$(($(stat -c %s "$dir/lines") - 65536))}" >"$oracle"
	rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
	"$memprov" report "$trace" --owner alloc --format json >"$report" || fail "report exits with $?"
	python3 "$here/shapes.py" "$report" "$oracle" 'lines=Go arena (by address)' || fail "the classes are wrong"
	stop_work
else
	echo "note: no Go program (fzf): not judged"
fi

if command -v java >/dev/null && java --list-modules | grep -q jdk.compiler; then
	echo "# JVM"
	start_command java -Xmx600m -XX:+UseSerialGC "$here/../work/Hold.java" 97
	judge 'heap=JVM heap (by shape)'
else
	echo "note: no JDK: the JVM is not judged"
fi
