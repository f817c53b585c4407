#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pages are counted on the nodes where move_pages finds them, and in all on those of numa_maps.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -d /sys/devices/system/node/node1 ] || skip "needs two NUMA nodes"
start_work numa
start_record
go
kill -STOP "$pid"
stop_record
check
python3 - "$report" "$oracle" "/proc/$pid/numa_maps" <<'END' || fail "a node's bytes are wrong"
import json
import re
import sys

rows = json.load(open(sys.argv[1], encoding="utf-8"))["rows"]
truths = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.startswith("{")]
maps = open(sys.argv[3], encoding="utf-8").read()
wrong = not truths


def expect(what, truth, got):
    global wrong
    print(f"{'ok   ' if got == truth else 'WRONG'} {what}: truth {truth} memprov {got}")
    wrong |= got != truth


for node in ("node0", "node1"):
    for truth in truths:
        mine = [row["costs"][node] for row in rows
                if truth["owner"] in [f["function"] for f in row["origin"].get("stack") or []]]
        expect(f"{truth['owner']} {node}", truth[node], sum(v.get("exact", 0) for v in mine))
    pages = sum(int(n) for n in re.findall(rf" N{node[4]}=(\d+)", maps))
    # numa_maps leaves out pages of the kernel's own, as the vdso's are.
    expect(f"all on {node}", pages * 4096, sum(row["costs"][node]["value"] for row in rows
                                              if row["origin"]["kind"] != "special"))
sys.exit(wrong)
END
kill -CONT "$pid"
stop_work
