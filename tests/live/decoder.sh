#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The second decoder, written from memprov-trace(5), reads a real recording as the library does.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work mapops
start_record
go
stop_record
stop_work
bash "$here/../decoder/compare.sh" "$build/tests/unit_trace" "$trace"
