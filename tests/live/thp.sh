#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Huge pages whole, touched once, and partly unmapped.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
grep -q "\[never\]" /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null && skip "huge pages are off"
run thp
