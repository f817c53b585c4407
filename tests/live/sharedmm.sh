#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A CLONE_VM child outside the thread group maps memory, without --tree: one that is born while it is
# recorded, and one that was there before.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run sharedmm
rm -f "$trace" "$trace.old"
start_work sharedmm early
start_record
go
stop_record
check
stop_work
