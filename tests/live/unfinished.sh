#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A mapping call that has not returned when the recording ends is a named loss: what it does cannot
# be told, and nothing that was mapped stays exact.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work unfinished
start_record
go
grep -q '"open":1' "$oracle" || skip "no userfaultfd to keep a call from returning"
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
unset 'pids[-1]'
[ "$status" = 3 ] || fail "record exits with $status, not 3, after a loss"
status=0
"$memprov" report "$trace" --format json >"$report" || status=$?
[ "$status" = 3 ] || fail "report exits with $status, not 3, after a loss"
python3 - "$report" "$oracle" <<'END' || fail "an unfinished call leaves something exact"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = json.loads(open(sys.argv[2], encoding="utf-8").readline())
assert report["recording"]["loss"]["causes"]["call_unfinished"] == 1, report["recording"]["loss"]
assert report["recording"]["loss"]["total"] == 1, report["recording"]["loss"]
rest = [r for r in report["rows"]
        if any(f.get("function") == truth["owner"] for f in r["origin"].get("stack") or [])]
assert sum(r["costs"]["resident"]["value"] for r in rest) == truth["resident"], rest
for row in report["rows"]:
    if row["origin"]["kind"] in ("mmap", "brk", "unattributed"):
        for column in ("resident", "reserved"):
            assert not row["costs"][column].get("exact"), (row["origin"], column)
print("ok unfinished", report["recording"]["loss"]["causes"])
END
