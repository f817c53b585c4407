#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What becomes of pages after their first fault: paged out, read back, copied by a child, huge.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ "${MEMPROV_TEST_SWAP:-0}" = 1 ] || skip "MEMPROV_TEST_SWAP=1 adds swap for the test"
want_zram 128M

start_work life
start_record --tree
go
stop_record
python3 "$here/life.py" "$memprov" "$trace" "$oracle" || fail "the report is wrong"
stop_work
