#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What becomes of pages after their first fault: paged out, read back, copied by a child, huge.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ "${MEMPROV_TEST_SWAP:-0}" = 1 ] || skip "MEMPROV_TEST_SWAP=1 adds swap for the test"
want_zram 128M

for off in "" off; do
	start_work life
	start_record --tree
	go
	if [ -n "$off" ]; then
		echo "# swapoff brings the rest back: no fault did"
		swapoff /dev/zram0
		sed -i -E 's/"swapped":[0-9]+,"resident":[0-9]+/"swapped":0,"resident":67108864/' "$oracle"
	fi
	stop_record
	python3 "$here/life.py" "$memprov" "$trace" "$oracle" || fail "the report is wrong"
	stop_work
done
