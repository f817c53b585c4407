#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pages of the hugetlb pool are reserved, not resident, and have a column of their own.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
pool=/proc/sys/vm/nr_hugepages
had=$(cat $pool 2>/dev/null) || skip "the kernel has no hugetlb"
trap 'echo "$had" >$pool; cleanup' EXIT
[ "$had" -ge 7 ] || echo 7 >$pool || skip "the pool cannot be set"
[ "$(awk '$1 == "HugePages_Free:" { print $2 }' /proc/meminfo)" -ge 7 ] ||
	skip "no seven free hugetlb pages"

for walk in tables pagemap; do
	export MEMPROV_WALK=$walk
	run hugetlb
	grep -q map_pool "$oracle" || fail "the kernel gave no hugetlb page"
	python3 - "$report" "$oracle" <<'END' || fail "$walk: hugetlb is wrong"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
check = report["check"]["hugetlb"]
total = 0
for line in open(sys.argv[2], encoding="utf-8"):
    truth = json.loads(line)
    if "hugetlb" not in truth:
        continue
    rows = [r for r in report["rows"] if any(f.get("function") == truth["owner"]
                                             for f in r["origin"].get("stack") or [])]
    for column in ("hugetlb", "reserved"):
        got = sum(r["costs"][column].get("exact", 0) for r in rows)
        print(f"ok    {truth['owner']} {column} truth {truth[column]} memprov {got}")
        assert got == truth[column], (truth, column, got)
    total += truth["hugetlb"]
assert total == check["kernel"], (total, check)
assert check["residual"] == 0 and check["status"] == "ok", check
assert report["totals"]["hugetlb"]["value"] == total
assert not check["unattributed"], check
END
done
