#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Each signal that asks for an end gets a whole recording, and a limit on the size of files is told
# like a full disk.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work grow
go
for signal in INT TERM HUP; do
	rm -f "$trace" "$trace.old"
	start_record
	kill -"$signal" "$recorder"
	wait "$recorder" || fail "SIG$signal: record exits with $?"
	unset 'pids[-1]'
	"$memprov" report "$trace" --format json >"$report"
	grep -q '"complete": true' "$report" || fail "SIG$signal leaves half a recording"
	echo "ok    SIG$signal"
done

# Whoever ignores the hangup means it.
rm -f "$trace" "$trace.old"
: >"$dir/record.err"
env --ignore-signal=HUP --default-signal=INT "$memprov" record -p "$pid" -o "$trace" 2>"$dir/record.err" >&2 &
recorder=$!
pids+=("$recorder")
await is_recording
kill -HUP "$recorder"
sleep 0.5
kill -0 "$recorder" || fail "SIGHUP ends a recording that ignores it"
stop_record
echo "ok    SIGHUP ignored"

rm -f "$trace" "$trace.old"
got=0
(
	ulimit -f 1
	exec timeout 60 "$memprov" record -p "$pid" -w 1s -o "$trace" 2>"$dir/err"
) || got=$?
[ "$got" = 1 ] || fail "ulimit -f: exit $got"
grep -q "^memprov: record: $trace: no space left" "$dir/err" || fail "ulimit -f: $(cat "$dir/err")"
[ ! -e "$trace.starting" ] || fail "ulimit -f leaves $trace.starting"
echo "ok    ulimit -f"
stop_work
