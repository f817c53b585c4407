#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Both sides of a fork keep their owners through copy on write.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run forker --tree
