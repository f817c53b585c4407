#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What memprov says, and the status it exits with, when it cannot go on.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

# expect STATUS TEXT COMMAND...: TEXT is part of what it prints on stderr.
expect() {
	local want=$1 text=$2 got=0
	shift 2
	timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
	[ "$got" = "$want" ] || {
		cat "$dir/err" >&2
		fail "$*: exit $got instead of $want"
	}
	grep -qF -- "$text" "$dir/err" || {
		cat "$dir/err" >&2
		fail "$*: stderr lacks: $text"
	}
	echo "ok    exit $want: ${*:2}"
}

cd "$dir"
if [ ! -e /proc/999999 ]; then
	expect 1 "memprov: record: no process 999999: check the PID with ps" \
		"$memprov" record -p 999999 -o "$trace"
fi
expect 2 "usage" "$memprov" nosuch
[ ! -s "$dir/out" ] || fail "usage after a mistake goes to stdout"
expect 1 "not a memprov trace" "$memprov" report /etc/passwd
expect 127 "/nonexistent" "$memprov" record -o "$trace" -- /nonexistent
expect 126 "/etc/passwd" "$memprov" record -o "$trace" -- /etc/passwd
expect 7 "" "$memprov" record -o "$trace" -- sh -c "exit 7"
# The command's shell expands $$.
# shellcheck disable=SC2016
expect 143 "" "$memprov" record -o "$trace" -- sh -c 'kill -TERM $$'

expect 0 "" "$memprov" record -o "$trace" -- true
expect 1 "resident" "$memprov" report --by residnet "$trace"
expect 1 "nosuch" "$memprov" report --by nosuch "$trace"
grep -qE "reserved|resident|touched|cold|unique|pss|cow" "$dir/err" ||
	fail "an absent column is not answered with a present one"
[ ! -s "$dir/out" ] || fail "an error still prints a report"
