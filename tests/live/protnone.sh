#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Huge pages without access: resident, and shared with whom they are shared.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work protnone
start_record
go
stop_record
rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
truth=$(sed -n 's/.*"resident":\([0-9]*\).*/\1/p' "$oracle" | awk '{ n += $1 } END { print n }')
if [ "$rss" -lt "$truth" ]; then
	skip "smaps of this kernel leaves out huge pages without access: Rss $rss of $truth"
fi
check
stop_work
python3 - "$report" "$oracle" <<'END' || fail "shared or pss of pages without access is wrong"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = {t["owner"]: t for t in map(json.loads, open(sys.argv[2], encoding="utf-8"))}
for owner, mappings in (("map_alone", 1), ("map_shared", 2)):
    rows = [r for r in report["rows"]
            if any(f.get("function") == owner for f in r["origin"].get("stack") or [])]
    resident = truth[owner]["resident"]
    want = {"shared": resident if mappings > 1 else 0, "pss": resident // mappings}
    for column, value in want.items():
        got = sum(r["costs"][column].get("exact", 0) for r in rows)
        print(f"{owner} {column} truth {value} memprov {got}")
        assert got == value, (owner, column)
END
