#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Names with inlined functions, files and lines of random addresses are llvm-symbolizer's: of this C
# program, of C++ and of Rust. ADDRESSES=n of each.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

command -v llvm-symbolizer >/dev/null || skip "needs llvm-symbolizer"
addresses=${ADDRESSES:-10000}

same() {
	timeout 250 python3 "$here/../stacks/names.py" "$build/stacks/names" "$1" "$addresses" >"$dir/names" || {
		cut -c1-2000 "$dir/names" >&2
		fail "names of $1 differ from llvm-symbolizer's"
	}
	tail -n 1 "$dir/names"
}

same "$memprov"
g++ -O2 -g -o "$dir/cxx" "$here/../stacks/names.cc"
same "$dir/cxx"
if command -v rustc >/dev/null && rustc --version >/dev/null 2>&1; then
	rustc -O -g -o "$dir/rust" "$here/../stacks/names.rs"
	same "$dir/rust"
	rustc -O -g -C symbol-mangling-version=v0 -o "$dir/rust-v0" "$here/../stacks/names.rs"
	same "$dir/rust-v0"
else
	echo "note: no rustc: names of Rust are not compared"
fi
