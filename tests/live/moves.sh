#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Several VMAs moved by one call: the owner follows the pages that moved, and only these.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work moves
start_record
go
if ! grep -q map_source "$oracle"; then
	skip "the kernel moves one VMA at a time"
fi
stop_record
check
stop_work
