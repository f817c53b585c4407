#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Who may include whom, and every header of lib/ and cmd/ compiles alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
bad() {
	echo "FAIL $*"
	status=1
}
allowed() {
	case $1 in
	adapter) echo 'adapter|bpf' ;;
	trace) echo 'trace|bpf' ;;
	ledger) echo 'ledger|bpf' ;;
	sym) echo 'sym|bpf' ;;
	unwind) echo 'unwind|bpf' ;;
	text) echo 'text|bpf' ;;
	perf) echo 'perf|bpf' ;;
	capture) echo 'capture|trace|sym|text|unwind|perf|bpf' ;;
	join) echo 'join|ledger|text|trace|bpf' ;;
	out) echo 'out|join|text' ;;
	api) echo 'api|join|trace|bpf' ;;
	esac
}
for file in lib/*/*.[ch]; do
	area=${file#lib/}
	area=${area%%/*}
	while read -r target; do
		name=${target#lib/}
		name=${name%%/*}
		[[ $name =~ ^($(allowed "$area"))$ ]] || bad "$file includes $target"
	done < <(sed -n 's/^#include "\([^"]*\/[^"]*\)"/\1/p' "$file")
	case $area in capture) ;; *) ! grep -q '<bpf/' "$file" || bad "$file uses libbpf" ;; esac
done
grep -l 'jansson.h' lib/*/*.[ch] cmd/*.c cmd/*/*.c | grep -v '^lib/out/' && bad "jansson outside lib/out"
for header in lib/*/*.h cmd/*.h cmd/*/*.h; do
	gcc -std=gnu11 -Wall -Wextra -Werror -I. -fsyntax-only -x c "$header" 2>/dev/null || bad "$header does not compile alone"
done
[ $status = 0 ] && echo "ok includes"
exit $status
