#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# One program in several states has the same names: debug sections in it, compressed, in a file of
# their own behind a .gnu_debuglink, or symbols alone in .gnu_debugdata. A debug file that is not the
# program's, or damaged, gives none. Symbols may lie in one another.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

for tool in objcopy xz; do
	command -v "$tool" >/dev/null || skip "needs $tool"
done
names=$build/stacks/names

# offsets FILE: file offsets of instructions of .text, one in 7 bytes.
offsets() {
	readelf -SW "$1" | awk '$2 == ".text" || $3 == ".text" { for (i = 1; i <= NF; i++) if ($i == ".text") print $(i + 3), $(i + 4) }' |
		{ read -r at len && python3 -c "
import sys
at, length = int('$at', 16), int('$len', 16)
for a in range(at, at + length, 7): print('%x' % a)"; }
}

# names_of FILE: function, file and line of each.
names_of() {
	timeout 60 "$names" "$1" <"$dir/offsets" || fail "names of $1 exit with $?"
}

# same NAME FILE [FIELDS]: its names, or those fields of them, are the whole program's.
same() {
	names_of "$2" | cut -f "${3:-1-}" >"$dir/got"
	cut -f "${3:-1-}" "$dir/want" >"$dir/want.cut"
	cmp -s "$dir/got" "$dir/want.cut" || fail "$1: $(diff "$dir/got" "$dir/want.cut" | head -4)"
	echo "ok    $1"
}

# none NAME FILE: no function of the program's own.
none() {
	names_of "$2" | cut -f1 | grep -q "fill" && fail "$1: it has names"
	echo "ok    $1: no names"
}

mkdir "$dir/bin"
whole=$dir/bin/whole
gcc -O2 -g -Wl,--build-id=none -o "$whole" "$here/../stacks/filler.c"
offsets "$whole" >"$dir/offsets"
names_of "$whole" >"$dir/want"
grep -q "by_pieces" "$dir/want" || fail "the whole program has no names"

objcopy --compress-debug-sections=zlib "$whole" "$dir/bin/zlib"
same "compressed sections" "$dir/bin/zlib"

objcopy --only-keep-debug "$whole" "$dir/bin/whole.debug"
strip -o "$dir/bin/linked" "$whole"
(cd "$dir/bin" && objcopy --add-gnu-debuglink=whole.debug linked)
same "a debug file by its .gnu_debuglink" "$dir/bin/linked"
mkdir "$dir/bin/.debug"
mv "$dir/bin/whole.debug" "$dir/bin/.debug/"
same "the same in .debug" "$dir/bin/linked"

objcopy --compress-debug-sections=zlib "$dir/bin/.debug/whole.debug" "$dir/bin/whole.debug"
rm "$dir/bin/.debug/whole.debug"
none "a debug file with another checksum" "$dir/bin/linked"
(cd "$dir/bin" && strip -o packed whole && objcopy --add-gnu-debuglink=whole.debug packed)
same "a compressed debug file" "$dir/bin/packed"

# 200 MiB of it are something else; then it is cut off in the middle, and damaged.
truncate -s 200M "$dir/ballast"
objcopy --add-section .ballast="$dir/ballast" "$dir/bin/whole.debug" "$dir/bin/large.debug"
(cd "$dir/bin" && strip -o large whole && objcopy --add-gnu-debuglink=large.debug large)
same "a debug file of 200 MiB" "$dir/bin/large"
truncate -s 100M "$dir/bin/large.debug"
none "the same, cut off" "$dir/bin/large"
rm -f "$dir/bin/large.debug" "$dir/ballast"

# Symbols of the functions alone, as distributions pack them.
objcopy --only-keep-debug "$whole" "$dir/mini"
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbol=fill --keep-symbol=by_hand \
	--keep-symbol=by_library --keep-symbol=by_pieces --keep-symbol=main "$dir/mini" "$dir/mini.small"
xz -k "$dir/mini.small"
strip -o "$dir/bin/mini" "$whole"
objcopy --add-section .gnu_debugdata="$dir/mini.small.xz" "$dir/bin/mini"
names_of "$dir/bin/mini" | cut -f1 >"$dir/got"
for f in by_hand by_library by_pieces main; do
	grep -q "^$f" "$dir/got" || fail ".gnu_debugdata: no $f"
done
echo "ok    symbols in .gnu_debugdata"

# inner lies in outer, which goes on behind it; alias is the same place as inner.
gcc -c -o "$dir/over.o" -x assembler - <<'END'
	.text
	.globl outer, inner, behind
	.type outer, @function
	.type inner, @function
	.type behind, @function
outer:	.fill 64, 1, 0x90
inner:	.fill 32, 1, 0x90
	.size inner, . - inner
	.fill 64, 1, 0x90
	.size outer, . - outer
behind:	.fill 32, 1, 0x90
	.size behind, . - behind
	.fill 64, 1, 0x90
END
gcc -shared -nostdlib -o "$dir/over.so" "$dir/over.o"
at=$(readelf -sW "$dir/over.so" | awk '$8 == "outer" { print $2; exit }')
text=$(readelf -SW "$dir/over.so" | awk '{ for (i = 1; i <= NF; i++) if ($i == ".text") print $(i + 2), $(i + 3) }')
python3 - "$names" "$dir/over.so" "$at" "$text" <<'END' || fail "symbols in one another"
import subprocess, sys
names, path, at, text = sys.argv[1:]
addr, offset = (int(x, 16) for x in text.split())
base = int(at, 16) - addr + offset
def name(off):
    p = subprocess.run([names, path], input="%x\n" % (base + off), capture_output=True, text=True, check=True)
    return p.stdout.split("\t")[0]
want = [(0, "outer"), (63, "outer"), (64, "inner"), (95, "inner"), (96, "outer"), (159, "outer"), (160, "behind"), (191, "behind"), (192, "??"), (255, "??")]
got = [(o, name(o)) for o, _ in want]
assert got == want, (got, want)
print("ok    symbols in one another")
END
