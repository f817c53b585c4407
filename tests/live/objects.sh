#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Thousands of mappings of one swapped object, walked in several passes: none is counted twice.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
want_swap
[ "$(wc -l </proc/swaps)" -gt 1 ] || skip "needs swap"
run objects
