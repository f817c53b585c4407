#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# MREMAP_DONTUNMAP and the growth of a MAP_GROWSDOWN mapping.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run remaps
