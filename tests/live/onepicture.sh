#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A target that dies right after the first picture: that picture is first and last, and nothing grew.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
sleep 60 &
pid=$!
pids+=("$pid")
start_record
kill -KILL "$pid"
await_end() { ! kill -0 "$recorder" 2>/dev/null; }
await await_end || fail "record outlives its target"
"$memprov" report "$trace" --format json >"$report" || true
python3 - "$report" <<'END'
import json, sys
t = json.load(open(sys.argv[1]))["totals"]
assert t["resident"] and t["resident"]["value"] > 0, t["resident"]
assert t["grown"]["value"] == 0, t["grown"]
print("ok nothing grew between one picture and itself")
END
