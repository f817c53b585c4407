#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A program that has only what was installed prints the same folded stacks as report, as wide as
# the kernel's Rss; what is no trace is an error. usage: outside.sh BUILDDIR
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/../live/lib.sh"

need_bpf
outside=$here/../outside
prefix=$build/outside
rm -rf "$prefix"
cmake --install "$build" --prefix "$prefix" >/dev/null || fail "cmake --install"

[ "$(wc -l <"$outside/folded.c")" -le 55 ] || fail "folded.c has more than 55 lines"
pc=$(find "$prefix" -name memprov.pc)
export PKG_CONFIG_PATH=${pc%/*}
export LD_LIBRARY_PATH=$(pkg-config --variable=libdir memprov)
# Built elsewhere: the source tree is not to be found.
cp "$outside"/*.c "$dir"
cd "$dir"
for program in folded evidence; do
	# shellcheck disable=SC2046 # words
	gcc -std=c11 -Wall -Wextra -Werror -o "$program" "$program.c" $(pkg-config --cflags --libs memprov)
done
echo '#include <memprov.h>
int main() { return !*memprov_version(); }' >plus.cc
# shellcheck disable=SC2046
g++ -Wall -Wextra -Werror -o plus plus.cc $(pkg-config --cflags --libs memprov)
./plus || fail "no version"
for page in man1/memprov.1 man3/libmemprov.3 man5/memprov-trace.5; do
	[ -f "$prefix/share/man/$page" ] || fail "$page is not installed"
done
nm -D --defined-only "$LD_LIBRARY_PATH/libmemprov.so" >symbols
! grep -vE ' (T memprov_|A MEMPROV_)' symbols || fail "the library shows its inside"
for name in $(grep -oE '\bmemprov_[a-z_]+\(' "$prefix/include/memprov.h" | tr -d '(' | sort -u); do
	grep -qw "$name" symbols || fail "$name is declared, not there"
	grep -qw "$name" "$prefix/share/man/man3/libmemprov.3" || fail "$name is not in libmemprov(3)"
done

start_work mapops
start_record
go
kill -STOP "$pid"
stop_record
rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
stop_work

"$prefix/bin/memprov" report "$trace" --by resident --format folded >want
./folded "$trace" >got || fail "folded exits with $?"
diff want got || fail "folded stacks differ from report's"
width=$(awk '{ sum += $NF } END { printf "%.0f", sum }' got)
[ "$width" = "$rss" ] || fail "the folded stacks are $width wide, Rss is $rss"
grep -q ';map_' got || fail "no function of the workload in the folded stacks"
./folded "$trace" reserved >got
"$memprov" report "$trace" --by reserved --format folded | diff - got || fail "reserved differs"
"$memprov" report "$trace" --format json >report.json
./evidence "$trace" >lines || fail "evidence exits with $?"
python3 "$outside/compare.py" lines report.json || fail "the library and report disagree"

# expect TEXT FILE [COLUMN]: exit 1, one line with the reason, no result.
expect() {
	local status=0 text=$1
	shift
	timeout 60 ./folded "$@" >got 2>err || status=$?
	[ "$status" = 1 ] || fail "folded $*: exit $status"
	[ ! -s got ] || fail "folded $*: an error has a result"
	[ "$(wc -l <err)" = 1 ] && grep -qF -- "$text" err || fail "folded $*: $(cat err)"
}
expect "No such file or directory" "$dir/nosuch"
expect "the nearest is resident" "$trace" residnt
: >empty
head -c 100000 /dev/urandom >garbage
{ head -c 40 "$trace"; head -c 5000 /dev/urandom; } >header
for file in empty garbage header "$dir" /dev/null; do
	expect "not a memprov trace" "$file"
done
# One byte turned: the checksum of its block says so.
size=$(stat -c %s "$trace")
for at in 1 $((size / 3)) $((size / 2)) $((size - 20)); do
	cp "$trace" flipped
	byte=$(od -An -tu1 -j "$at" -N 1 flipped)
	# shellcheck disable=SC2059 # the format is the byte
	printf "$(printf '\\%03o' $((byte ^ 255)))" | dd of=flipped bs=1 seek="$at" conv=notrunc status=none
	expect "memprov" flipped
done
echo "ok    installed, $(wc -l <want) stacks, $width bytes wide"
