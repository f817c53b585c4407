#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A short run of the fuzzers under ASan and UBSan: the trace reader; unwind tables and perf maps. usage: fuzz.sh BUILDDIR [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1/fuzz
mkdir -p "$out/corpus"
clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. \
	lib/trace/*.c tests/fuzz/trace_fuzz.c -lzstd -lz -o "$out/trace_fuzz"
"$out/trace_fuzz" -max_total_time="${2:-15}" -timeout=10 -rss_limit_mb=1024 "$out/corpus" 2>&1 | tail -3

clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. \
	lib/unwind/*.c lib/sym/perfmap.c tests/fuzz/unwind_fuzz.c -lelf -o "$out/unwind_fuzz"
mkdir -p "$out/unwind"
# A small program, its sections, and a perf map to begin with.
printf 'int main(void) { return 0; }' | gcc -x c -O2 -s -o "$out/small" -
{ printf '\0' && cat "$out/small"; } >"$out/unwind/elf"
for section in eh_frame debug_frame; do
	gcc -g -fno-asynchronous-unwind-tables -xc -c -o "$out/small.o" - <<<'int f(int n) { return n ? f(n - 1) + 1 : 0; }'
	[ $section = debug_frame ] || gcc -xc -c -o "$out/small.o" - <<<'int f(int n) { return n ? f(n - 1) + 1 : 0; }'
	objcopy -O binary --set-section-flags .$section=alloc --only-section=.$section "$out/small.o" "$out/section"
	{ printf "\\x0$([ $section = eh_frame ] && echo 2 || echo 3)" && cat "$out/section"; } >"$out/unwind/$section"
done
printf '\1%s\n' '100 40 first' '0x120 10 second' '110 0 empty' 'zz 1 bad' >"$out/unwind/perfmap"
"$out/unwind_fuzz" -max_total_time="${2:-15}" -timeout=10 -rss_limit_mb=2048 -max_len=65536 "$out/unwind" 2>&1 | tail -3
