#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# 10,000 VMAs: split by mprotect and mapped one by one.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run vmas
