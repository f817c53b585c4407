#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Processes forked from one have their code at the same addresses: each has its names all the same.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
judge() { # OWNER
	"$memprov" report "$trace" --owner "$1" --format json >"$report" || fail "report exits with $?"
	python3 - "$report" "$oracle" "$1" <<'END' || fail "a sibling's pages have no name"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
for line in open(sys.argv[2], encoding="utf-8"):
    truth = json.loads(line)
    rows = [r for r in report["rows"] if r["origin"]["pid"] == truth["pid"]
            and r["origin"]["kind"] in ("mmap", "fault")]
    named = [r for r in rows if truth["owner"] in
             [f["function"] for f in r["origin"]["stack"]]]
    got = sum(r["costs"]["resident"]["value"] for r in named)
    print("ok   " if got == truth["resident"] else "WRONG", sys.argv[3], truth, got)
    assert got == truth["resident"], [(r["origin"]["stack"][:3]) for r in rows]
    lost = [f for r in rows for f in r["origin"]["stack"]
            if not f["module"] and int(f["address"], 16)]
    assert not lost, lost
END
}

start_work siblings
start_record --tree
go
stop_record
judge alloc
judge fault

# Those that are there already are children, too: their pages are from before.
rm -f "$trace" "$trace.old"
start_record --tree
sleep 0.2
stop_record
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
python3 - "$report" "$oracle" <<'END' || fail "a child that was there before is not followed"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
for line in open(sys.argv[2], encoding="utf-8"):
    truth = json.loads(line)
    got = sum(r["costs"]["resident"]["value"] for r in report["rows"]
              if r["origin"]["pid"] == truth["pid"])
    assert got >= truth["resident"], (truth, got)
assert report["check"]["resident"]["residual"] == 0, report["check"]["resident"]
END
stop_work
