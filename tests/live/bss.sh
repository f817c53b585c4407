#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Memory that exec maps by itself is the program's own and nobody's omission, inferred by its place.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
mkfifo "$dir/in"
exec {in}<>"$dir/in" # both ends: it never ends by itself
echo go >&"$in"
env --default-signal=INT "$memprov" record -o "$trace" -- "$build/work/bss" \
	<"$dir/in" >"$oracle" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await grep -qs "^done" "$oracle" || fail "the workload did not finish"
stop_record
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
python3 - "$report" "$oracle" <<'END' || fail "the program's own array"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = [json.loads(line) for line in open(sys.argv[2]) if line[0] == "{"][0]
rows = [r for r in report["rows"] if r["origin"]["kind"] == "special" and r["origin"]["evidence"]]
got = sum(r["costs"]["resident"]["value"] for r in rows)
assert truth["bss"] <= got <= truth["bss"] + 65536, (truth, got)
assert not any(r["costs"]["resident"].get("exact") for r in rows), rows
assert report["check"]["resident"]["unattributed"] == 0, report["check"]["resident"]
print("ok    bss", truth["bss"], "memprov", got)
END
