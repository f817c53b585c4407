#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# compare.sh TRACE_TEST FILE: the C reader and the second decoder must print the same records.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: compare.sh TRACE_TEST FILE" >&2
	exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$1" dump "$2" >"$tmp/c"
python3 "$here/decode.py" "$2" >"$tmp/python"
[ -s "$tmp/c" ] || { echo "FAIL compare: no records in $2" >&2; exit 1; }
diff "$tmp/c" "$tmp/python" >"$tmp/diff" || { head -n 20 "$tmp/diff"; exit 1; }
echo "ok compare $(wc -l <"$tmp/c") records"
