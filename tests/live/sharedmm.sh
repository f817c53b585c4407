#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A CLONE_VM child outside the thread group maps memory; without --tree.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run sharedmm
