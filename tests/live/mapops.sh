#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# munmap, mremap, brk, mprotect and MADV_DONTNEED in the pieces they leave.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run mapops
