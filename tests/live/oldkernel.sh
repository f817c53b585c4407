#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A kernel that lacks what the BPF programs call: pictures all the same, by pagemap, that add up to Rss;
# the reason is said where it is looked for, and nothing of unknown birth is called exact.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "needs root"
"$memprov" features --format json >"$dir/features.json"
why=$(python3 - "$dir/features.json" <<'END'
import json, sys
doc = json.load(open(sys.argv[1], encoding="utf-8"))
rows = {(c["name"], p["name"]): p for c in doc["capabilities"] for p in c["providers"]}
row = rows["map", "sys_enter/exit"]
if row["status"] == "absent":
    print(row["reason"])
END
)
[[ $why == *"too old"* ]] || skip "this kernel runs the programs"
want_swap
for work in pages guards memfd mapops thp vmas direct; do
	rm -f "$trace" "$trace.old"
	start_work "$work"
	: >"$dir/record.err"
	env --default-signal=INT "$memprov" record -p "$pid" -o "$trace" 2>"$dir/record.err" >&2 &
	recorder=$!
	pids+=("$recorder")
	await is_recording || fail "record says nothing for 30 s"
	grep -qF "reduced mode, pictures only: $why" "$dir/record.err" || fail "reduced mode is not said"
	go
	kill -STOP "$pid"
	stop_record
	rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 - "$report" "$rss" "$work" <<'END' || fail "$work: the report is wrong"
import json, sys
report, rss, work = json.load(open(sys.argv[1], encoding="utf-8")), int(sys.argv[2]), sys.argv[3]
for column in ("resident", "reserved", "swapped", "thp", "pss"):
    check = report["check"][column]
    assert check["residual"] == 0 or column == "pss" and abs(check["residual"]) < 1024, (column, check)
assert report["check"]["resident"]["kernel"] == rss, (report["check"]["resident"], rss)
assert sum(r["costs"]["resident"]["value"] for r in report["rows"]) == rss
for row in report["rows"]:
    for name, cost in row["costs"].items():
        assert not cost or not cost.get("exact"), (row["origin"], name, cost)
assert not report["columns"]["faulted"]["available"] and "too old" in report["columns"]["faulted"]["reason"]
print("ok", work, rss)
END
	stop_work
done
