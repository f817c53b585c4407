#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The first thread exits while recording: no picture may be passed off as the last one.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work noleader
start_record
go
stop_record
# /proc/PID/smaps_rollup of an exited first thread is gone: another thread has it.
for task in /proc/"$pid"/task/*; do
	[ "${task##*/}" = "$pid" ] || break
done
rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "$task/smaps_rollup")
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
python3 "$here/check.py" "$report" "$oracle" --pid "$pid" --rss "$rss" || fail "the report is wrong"
stop_work
