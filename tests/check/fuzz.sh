#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A short run of the trace reader's fuzzer under ASan and UBSan. usage: fuzz.sh BUILDDIR [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1/fuzz
mkdir -p "$out/corpus"
clang -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -I. \
	lib/trace/*.c tests/fuzz/trace_fuzz.c -lzstd -lz -o "$out/trace_fuzz"
"$out/trace_fuzz" -max_total_time="${2:-15}" -timeout=10 -rss_limit_mb=1024 "$out/corpus" 2>&1 | tail -3
