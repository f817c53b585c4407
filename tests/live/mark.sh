#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Marks into running recordings. In a network namespace of its own: other recordings of this machine
# are not seen from there.
set -euo pipefail
if [ -z "${MARK_ALONE-}" ]; then
	unshare -n true 2>/dev/null || {
		echo "skip: needs unshare -n"
		exit 77
	}
	MARK_ALONE=1 exec unshare -n bash "$0" "$@"
fi
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

# expect STATUS WORDS ARGUMENT...: WORDS are part of what mark says.
expect() {
	local want=$1 words=$2 got=0
	shift 2
	timeout 90 "$memprov" mark "$@" 2>"$dir/err" >"$dir/out" || got=$?
	[ "$got" = "$want" ] || fail "mark ${*:0:60}: exit $got instead of $want: $(cat "$dir/err")"
	grep -qF -- "$words" "$dir/err" || fail "mark: stderr lacks '$words': $(cat "$dir/err")"
	[ ! -s "$dir/out" ] || fail "mark prints a result"
	echo "ok    exit $want: ${words:-mark}"
}

# marks FILE: the texts in it, one a line.
marks() {
	"$memprov" report --format json "$1" | python3 -c '
import json, sys
recording = json.load(sys.stdin)["recording"]
last = 0
for mark in recording["marks"]:
    assert last <= mark["time_ns"] <= recording["duration_ns"], (mark, recording["duration_ns"])
    last = mark["time_ns"]
    print(mark["text"])'
}

long=$(printf 'x%.0s' {1..256})
expect 1 "no recording is running: start one with memprov record" hello
expect 2 "usage"
expect 2 "usage" two words
expect 2 "is empty" ""
expect 2 "longer than 256 bytes" "${long}y"
expect 2 "control character" $'a\nb'
expect 2 "control character" $'\e[2J'
expect 2 "not UTF-8" $'\xff'

start_work grow
start_record
first=$recorder
expect 0 "in $trace (recorder $first)" "before the step"
# It is in the file at once, not only at the end.
cp "$trace" "$dir/copy"
{ "$memprov" report --format json "$dir/copy" || true; } >"$report"
grep -q '"before the step"' "$report" || fail "the mark is confirmed and not in the file"
go
expect 0 "" "$long"
expect 0 "" "grüße, 100% \"quoted\""
expect 1 "process 1 records nothing" -p 1 text
expect 1 "nothing records to $dir/copy" -o "$dir/copy" text
expect 1 "No such file" -o "$dir/nosuch" text

# A second recording: it must be said which.
env --default-signal=INT "$memprov" record -p "$pid" -o "$dir/second" 2>"$dir/second.err" &
second=$!
pids+=("$second")
await grep -q recording "$dir/second.err" || fail "no second recording"
expect 1 "2 recordings are running" text
grep -q -- "-p $first  $trace" "$dir/err" || fail "the first is not named"
grep -q -- "-p $second  $dir/second" "$dir/err" || fail "the second is not named"
expect 0 "in $dir/second" -o "$dir/second" "by file"
expect 0 "in $trace" -p "$first" "by process"

# Another user is not heard.
if command -v setpriv >/dev/null; then
	chmod 755 "$dir"
	got=0
	setpriv --reuid 65534 --clear-groups "$memprov" mark -p "$first" intruder 2>"$dir/err" || got=$?
	[ "$got" = 1 ] || fail "another user's mark: exit $got: $(cat "$dir/err")"
	grep -q "run as root" "$dir/err" || fail "another user is not told: $(cat "$dir/err")"
	echo "ok    another user is not heard"
fi

# What is no mark at all is passed over.
python3 - "$first" <<'END'
import os
import socket
import sys

s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for packet in (b"", b"x", os.urandom(40), b"mpmk" + os.urandom(9), b"mpmk" + b"\x02\0\0\0" + bytes(16),
               b"mpmk" + b"\x02\0\0\0" + bytes(16) + b"a\0b", b"mpmk" + b"\x02\0\0\0" + b"y" * 4000,
               b"mpmk" + b"\x02\0\0\0" + b"y" * 9000):
    s.sendto(packet, b"\0memprov-mark/" + sys.argv[1].encode())
END
kill -INT "$second"
wait "$second" || fail "the second recording exits with $?"
unset 'pids[-1]'
stop_record

printf '%s\n' "before the step" "$long" "grüße, 100% \"quoted\"" "by process" >"$dir/want"
marks "$trace" >"$dir/got"
cmp "$dir/want" "$dir/got" || fail "the file has other marks: $(cat "$dir/got")"
[ "$(marks "$dir/second")" = "by file" ] || fail "the second file has other marks"
"$memprov" report --format table "$trace" | grep -e "mark at [0-9.]* s: before the step" >/dev/null ||
	fail "the table shows no mark"
echo "ok    the files have the marks that were confirmed, in order"

# -w, and top.
"$memprov" record -p "$pid" -w 60s -o "$trace" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await is_recording
expect 0 "" "with a duration"
kill -TERM "$recorder"
wait "$recorder" || fail "record exits with $?"
unset 'pids[-1]'
[ "$(marks "$trace")" = "with a duration" ] || fail "no mark with -w"

env --default-signal=INT "$memprov" top -p "$pid" -d 0.2 >"$dir/tables" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await grep -q OWNER "$dir/tables" || fail "top prints nothing"
expect 0 "in (no file) (recorder $recorder)" "seen by top"
await grep -q "mark at [0-9.]* s: seen by top" "$dir/tables" || fail "top shows no mark"
kill -INT "$recorder"
wait "$recorder" || fail "top exits with $?"
unset 'pids[-1]'
expect 1 "no recording is running" "too late"
stop_work
