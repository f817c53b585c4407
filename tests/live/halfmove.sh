#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# An mremap that failed after it had moved a part is a named loss: every page is still in a row, and
# none of those that were mapped is exact.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work halfmove
start_record
go
grep -q '"half":1' "$oracle" || skip "this kernel moves both or none"
kill -STOP "$pid"
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
unset 'pids[-1]'
[ "$status" = 3 ] || fail "record exits with $status, not 3, after a loss"
"$memprov" report "$trace" --format json >"$report" && fail "report exits with 0 after a loss"
python3 - "$report" "$oracle" <<'END' || fail "a half-done mremap leaves something exact"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = json.loads(open(sys.argv[2], encoding="utf-8").readline())
assert report["recording"]["loss"]["causes"].get("call_half_done") == 1, report["recording"]["loss"]
mapped = [r for r in report["rows"] if r["origin"]["kind"] in ("mmap", "unattributed")]
assert sum(r["costs"]["resident"]["value"] for r in mapped) >= truth["resident"], mapped
for row in mapped:
    for column in ("resident", "reserved"):
        assert not row["costs"][column].get("exact"), (row["origin"], column)
assert report["check"]["resident"]["residual"] == 0, report["check"]["resident"]
print("ok half moved", report["recording"]["loss"]["causes"])
END
