#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A target that dies right after the first picture, and a recorder that is killed: the one picture
# stands with its age, and what only two could tell is unknown. A recorder killed later leaves one
# of the end.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

judge() { # WHAT
	"$memprov" report "$trace" --format json >"$report" || true
	python3 - "$report" "$1" <<'END' || fail "$1"
import json, sys
report = json.load(open(sys.argv[1]))
t = report["totals"]
assert t["resident"]["value"] > 0, t["resident"]
assert t["grown"] is None, t["grown"]
assert not report["columns"]["grown"]["available"] and report["columns"]["grown"]["reason"]
assert all(r["costs"]["grown"] is None for r in report["rows"])
print("ok one picture shows no growth:", sys.argv[2])
END
	"$memprov" report "$trace" | grep -e "grown - (one picture only" >/dev/null || fail "the screen: $1"
}

sleep 60 &
pid=$!
pids+=("$pid")
start_record
kill -KILL "$pid"
await_end() { ! kill -0 "$recorder" 2>/dev/null; }
await await_end || fail "record outlives its target"
wait "$recorder" || fail "record exits with $? when its target ends"
judge "the target died"

rm -f "$trace" "$trace.old"
start_work grow
start_record
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null || true
judge "the recorder was killed"

# After some ten seconds, later where pictures are dear, one shows what was mapped since.
rm -f "$trace" "$trace.old"
start_record
go
has_two() { "$memprov" report "$trace" 2>/dev/null | grep -e "grown [^-]" >/dev/null; }
await has_two || await has_two || fail "no second picture in the file for a minute"
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null || true
: >"$dir/record.err"
"$memprov" report "$trace" --format json >"$report" || true
python3 - "$report" "$oracle" <<'END' || fail "the last picture in the file"
import json, sys
report = json.load(open(sys.argv[1]))
truth = json.loads(open(sys.argv[2]).readline())
# Names are asked for at the end of a recording: there are none.
held = [r["costs"] for r in report["rows"] if r["origin"]["kind"] == "mmap"]
for column in ("reserved", "resident", "grown"):
    got = sum(c[column]["value"] for c in held)
    print("ok" if got == truth.get(column, truth["resident"]) else "WRONG", column, got)
    assert got == truth.get(column, truth["resident"]), (column, got, truth)
END
stop_work
