#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A memfd mapped twice belongs to the object, once per mapping in Rss.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
want_swap
run memfd
