#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# One picture only (the target ends within a second): nothing has grown since it.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
sleep 0.6 &
pid=$!
pids+=("$pid")
env --default-signal=INT "$memprov" record -p "$pid" -o "$trace" 2>"$dir/record.err" ||
	fail "record exits with $?"
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
python3 - "$report" <<"END" || fail "grown is wrong"
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    rows = json.load(f)["rows"]
if not rows:
    raise SystemExit("no rows")
wrong = 0
for row in rows:
    grown = row["costs"].get("grown")
    # A sleeping program faults on next to nothing: 64 KiB is generous.
    if grown and abs(grown["value"]) > 65536:
        print("WRONG", row["origin"]["name"], "grown", grown)
        wrong = 1
raise SystemExit(wrong)
END
