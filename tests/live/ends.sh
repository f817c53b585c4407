#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# How a target ended is said: killed, by which signal, or its status.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
end_of() { # JSON-PATH VALUE LINE
	wait "$recorder" || fail "record exits with $? when its target ends"
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 - "$report" "$1" "$2" <<'END' || fail "the end of the target"
import json
import sys

target = json.load(open(sys.argv[1], encoding="utf-8"))["recording"]["targets"][0]
assert target["end"] == {sys.argv[2]: int(sys.argv[3])}, target
print("ok   ", target)
END
	"$memprov" report "$trace" | grep -e "$3" >/dev/null || fail "the screen does not say: $3"
	rm -f "$trace" "$trace.old"
}

for signal in KILL SEGV; do
	sleep 60 &
	pid=$!
	pids+=("$pid")
	start_record
	kill "-$signal" "$pid"
	end_of signal "$(kill -l "$signal")" "was killed by SIG$signal"
done
start_command bash -c 'echo "ready $$"; read -r _; exit 7'
start_record
echo go >&"$to"
end_of status 7 "exited with status 7"
