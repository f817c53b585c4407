#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# PROT_NONE pages are resident; guard markers and the zero page are not.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run guards
