#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Swap in compressed memory: what is swapped there is counted as what is on a disk is.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ "${MEMPROV_TEST_SWAP:-0}" = 1 ] || skip "MEMPROV_TEST_SWAP=1 adds swap for the test"
[ -e /sys/block/zram0/disksize ] || skip "needs zram"
[ "$(cat /sys/block/zram0/disksize)" = 0 ] || skip "zram0 is in use"
echo 64M >/sys/block/zram0/disksize
drop_swap() {
	swapoff /dev/zram0 2>/dev/null || true
	echo 1 >/sys/block/zram0/reset
}
trap 'cleanup; drop_swap' EXIT
mkswap -q /dev/zram0
swapon -p 100 /dev/zram0 || fail "no swap on zram0"

run direct
grep -q '"swapped":[1-9]' "$oracle" || fail "the workload swapped nothing"
awk '{ exit $5 == 0 }' /sys/block/zram0/stat || fail "nothing was written to zram0"
