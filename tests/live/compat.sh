#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Mapping calls by int 0x80 are not decoded: a named loss, after which nothing mapped is exact.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work compat
start_record
go
grep -q narrow "$oracle" || skip "the kernel has no 32-bit system calls"
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
unset 'pids[-1]'
[ "$status" = 3 ] || fail "record exits with $status, not 3, after a loss"
status=0
"$memprov" report "$trace" --format json >"$report" || status=$?
[ "$status" = 3 ] || fail "report exits with $status, not 3, after a loss"
python3 - "$report" <<'END' || fail "a mapping call by int 0x80 leaves something exact"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
assert report["recording"]["loss"]["causes"].get("compat_call", 0) >= 2, report["recording"]["loss"]
for row in report["rows"]:
    names = [f.get("function") for f in row["origin"].get("stack") or []]
    if row["origin"]["kind"] in ("mmap", "brk"):
        for column in ("resident", "reserved"):
            assert not row["costs"][column].get("exact"), (names, column, row["costs"][column])
assert report["check"]["resident"]["residual"] == 0, report["check"]["resident"]
print("ok compat", report["recording"]["loss"]["causes"])
END
