#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Samples of perf.data: decoded as perf script does, and charged to who has their addresses. The
# memory samples are made up, as no processor here counts any: what is judged is the reading, not
# hardware.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
tests=$here/../perf
dump=$build/perf/perfdump

same() { # FILE [OPTION]: perf's own decoding of it
	local fields=pid,tid,addr,data_src,ip,phys_addr
	[ "${2:-}" = --no-weight ] || fields=$fields,weight
	"$dump" "$1" >"$dir/ours" 2>"$dir/err" || fail "$1: $(cat "$dir/err")"
	perf script -i "$1" -G -F "$fields" >"$dir/theirs" 2>/dev/null || return 0
	python3 "$tests/same.py" "$dir/ours" "$dir/theirs" "${@:2}" || fail "$1: not what perf script prints"
}

python3 "$tests/make.py" "$dir/made" "$dir/truth" --lost 5
"$dump" "$dir/made" >"$dir/ours" 2>"$dir/err"
cmp "$dir/ours" "$dir/truth" || fail "not what was written into the file"
grep -q "samples 1000 lost 5" "$dir/err" || fail "losses: $(cat "$dir/err")"
echo "ok    1000 made-up samples"

if perf record -q -e page-faults -c 1 -d --phys-data -o "$dir/perf" -- ls / >/dev/null 2>&1; then
	same "$dir/made"
	for options in "" -z -g "-k monotonic" "-e minor-faults" "--user-regs=ip,sp"; do
		# Words of it.
		# shellcheck disable=SC2086
		perf record -q -e page-faults -c 1 -d --phys-data $options -o "$dir/perf" -- ls / \
			>/dev/null 2>&1 || continue
		echo "# perf record $options"
		same "$dir/perf" --no-weight
	done
	perf record -q -e page-faults -c 1 -d -o - -- ls / 2>/dev/null | cat >"$dir/piped"
	"$dump" - <"$dir/piped" >"$dir/ours" 2>"$dir/err" || fail "of a pipe: $(cat "$dir/err")"
	[ -s "$dir/ours" ] || fail "no samples of a pipe"
else
	echo "note: no perf here: not compared with it"
fi

range() {
	awk -v what="$1" 'index($0, what) { split($1, a, "-"); print a[1], a[2] }' "/proc/$pid/maps"
}

import() { # FILE EXIT
	local got=0
	"$memprov" record -p "$pid" -w 100ms --samples "$1" -o "$trace" 2>"$dir/record.err" || got=$?
	[ "$got" = "$2" ] || fail "record --samples $1 exits with $got"
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	rm -f "$trace"
}

start_work watched
hot=$(range memprov-hot)
rest=$(range memprov-rest)
# Each is two words.
# shellcheck disable=SC2086
{
	python3 "$tests/make.py" "$dir/made" "$dir/truth" --pid "$pid" --samples 3000 \
		--range $hot 70 --range $rest 25 --range 1000 2000 5
	import "$dir/made" 0
	python3 "$tests/import.py" "$report" "$dir/truth" memprov-hot $hot memprov-rest $rest ||
		fail "the report is wrong"
	python3 "$tests/make.py" "$dir/made" "$dir/truth" --pid "$pid" --range $hot 80 --range $rest 20 --drift
}
import "$dir/made" 0
grep -q '"ranked": false' "$report" || fail "halves that disagree are ranked"
"$memprov" record -p $$ -w 100ms --samples "$dir/made" -o "$trace" 2>/dev/null || fail "record of another"
"$memprov" report "$trace" --format json >"$report"
grep -q '"placed": 0' "$report" || fail "samples of another process are placed"
rm -f "$trace"

echo "# files that are none"
head -c 3000 "$dir/made" >"$dir/cut"
import "$dir/cut" 3
grep -q "ends inside a record" "$dir/record.err" || fail "cut off: $(cat "$dir/record.err")"
{ printf 2ELIFREP; tail -c +9 "$dir/made"; } >"$dir/other"
import "$dir/other" 3
grep -q "byte order" "$dir/record.err" || fail "other byte order: $(cat "$dir/record.err")"
import "$dir/nowhere" 3
grep -q "No such file" "$dir/record.err" || fail "no file: $(cat "$dir/record.err")"
import /dev/null 3
stop_work
