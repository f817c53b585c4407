#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every first touch is one FAULT, on the stack the workload was on: its own return addresses, in its
# order, whatever the size of the frames and however alike the registers are.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_work chains
start_record
go
stop_record
python3 "$here/../decoder/decode.py" "$trace" >"$dir/records" || fail "the second decoder refuses the trace"
python3 - "$dir/records" "$oracle" <<'END' || fail "the stacks are wrong"
import json
import sys

stacks, faults = {}, {}
with open(sys.argv[1], encoding="utf-8") as f:
    for line in f:
        r = json.loads(line)
        if r["type"] == "stack":
            stacks[r["id"]] = [int(a, 16) for a in r["frames"]]
        elif r["type"] == "fault":
            faults.setdefault(r["addr"] & ~4095, []).append(r["stack"])
wrong = 0
with open(sys.argv[2], encoding="utf-8") as f:
    for line in f:
        truth = json.loads(line)
        for i in range(truth["count"]):
            seen = faults.get(truth["first"] + i * truth["step"], [])
            chains = [stacks.get(s, [])[1 : 1 + len(truth["chain"])] for s in seen]
            if chains != [truth["chain"]]:
                wrong += 1
                if wrong < 4:
                    print("WRONG", truth["name"], i, chains, "not", truth["chain"])
        print(truth["name"], truth["count"], "faults,", len(truth["chain"]), "callers each")
raise SystemExit(wrong != 0)
END
stop_work
