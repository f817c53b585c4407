#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A caller that frame pointers skip is restored by the unwind tables, or shown as a gap: never replaced
# by its own caller.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
run hidden
"$memprov" report "$trace" --owner fault --format folded --by resident >"$dir/folded"
grep -q ';hidden_filler;' "$dir/folded" || fail "no stack through hidden_filler in --owner fault"
