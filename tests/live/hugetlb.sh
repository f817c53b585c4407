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
[ "$had" -ge 4 ] || echo 4 >$pool || skip "the pool cannot be set"
[ "$(awk '$1 == "HugePages_Free:" { print $2 }' /proc/meminfo)" -ge 4 ] ||
	skip "no four free hugetlb pages"

for walk in tables pagemap; do
	export MEMPROV_WALK=$walk
	run hugetlb
	grep -q map_pool "$oracle" || fail "the kernel gave no hugetlb page"
	python3 - "$report" "$oracle" <<'END' || fail "$walk: hugetlb is wrong"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if "map_pool" in line][0]
rows = [r for r in report["rows"]
        if any(f.get("function") == "map_pool" for f in r["origin"].get("stack") or [])]
got = sum(r["costs"]["hugetlb"].get("exact", 0) for r in rows)
check = report["check"]["hugetlb"]
print(f"ok    hugetlb truth {truth['hugetlb']} memprov {got} kernel {check['kernel']}")
assert got == truth["hugetlb"] == check["kernel"], (got, truth, check)
assert check["residual"] == 0 and check["status"] == "ok", check
assert report["totals"]["hugetlb"]["value"] == truth["hugetlb"]
END
done
