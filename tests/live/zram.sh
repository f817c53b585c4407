#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Swap in compressed memory: what is swapped there is counted as what is on a disk is.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ "${MEMPROV_TEST_SWAP:-0}" = 1 ] || skip "MEMPROV_TEST_SWAP=1 adds swap for the test"
want_zram 64M

run direct
grep -q '"swapped":[1-9]' "$oracle" || fail "the workload swapped nothing"
awk '{ exit $5 == 0 }' /sys/block/zram0/stat || fail "nothing was written to zram0"
