#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Addresses above 128 TiB: page tables of five levels.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
grep -qw la57 /proc/cpuinfo || skip "page tables have four levels here"
start_work high
start_record
go
grep -q above "$oracle" || skip "the kernel gives no address above 128 TiB"
stop_record
check
stop_work
