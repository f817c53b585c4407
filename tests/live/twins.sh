#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Two shared memory objects of one name are two rows, told apart by number and inode; what rows of
# two processes both have is "multi" in each.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
for walk in tables pagemap; do
	rm -f "$trace" "$trace.old"
	export MEMPROV_WALK=$walk
	start_work twins
	start_record --tree
	go
	stop_record
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 - "$report" "$oracle" <<'END' || fail "$walk: the twins are mixed up"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
names, ids, status = set(), set(), 0
for line in open(sys.argv[2], encoding="utf-8"):
    truth = json.loads(line)
    rows = [r for r in report["rows"] if r["origin"].get("inode") == truth["inode"]
            and r["origin"]["kind"] == "shmem" and r["origin"]["pid"] == truth["pid"]]
    assert len(rows) == 1, (truth, [r["origin"] for r in rows])
    costs = rows[0]["costs"]
    names.add(rows[0]["origin"]["name"])
    ids.add((rows[0]["id"], truth["pid"]))
    got = {"reserved": costs["reserved"]["value"], "resident": costs["resident"]["value"],
           "multi": costs["resident"].get("multi", 0)}
    for key, value in got.items():
        print("ok   " if value == truth[key] else "WRONG", rows[0]["origin"]["name"], key, value)
        status |= value != truth[key]
assert len(ids) == 3, ids
assert {n.rsplit(" ", 1)[1] for n in names if "#" in n} >= {"#1", "#2"}, names
sys.exit(status)
END
	stop_work
done
