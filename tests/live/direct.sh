#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The direct test: a sparse reservation, then another owner at its address.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
want_swap
seed=${MEMPROV_TEST_SEED:-$RANDOM}
echo "seed $seed"

# The reservation as it stands after the first step.
start_work direct "$seed"
start_record
go
stop_record
check --step 1
stop_work

# The same, watched on until the address has its second owner.
rm -f "$trace" "$trace.old"
start_work direct "$seed"
start_record
go
go
stop_record
check --step 2
stop_work
