#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What a target calls itself, its files and its functions reaches no terminal, ends no line and no
# field, in any format.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ "$(uname -m)" = x86_64 ] || skip "the workload's code is x86-64's"
trap 'rm -f "/tmp/perf-$pid.map"; cleanup' EXIT

start_command "$build/bench/hostile" "$dir"
start_record
go
stop_record
mkdir "$dir/out"
"$memprov" top -p "$pid" --batch 1 -d 0.3 >"$dir/out/top" 2>"$dir/out/top.err" || fail "top exits with $?"
"$memprov" record -p "$pid" -w 100ms -o "$dir/second" >"$dir/out/record" 2>"$dir/out/record.err" || fail "record exits with $?"
stop_work

for format in table folded json csv pprof speedscope html; do
	"$memprov" report "$trace" --format $format --columns resident -o "$dir/out/$format" || fail "--format $format exits with $?"
done
rm "$dir/out/pprof" # protobuf: its strings are tested by unit.formats
for group in function mapping file process; do
	"$memprov" report "$trace" --format table --group $group >"$dir/out/$group" || fail "--group $group exits with $?"
done
"$memprov" report "$trace" --children >"$dir/out/children" || fail "--children exits with $?"
for format in table json markdown folded; do
	"$memprov" diff "$trace" "$dir/second" --format $format >"$dir/out/diff-$format" || fail "diff exits with $?"
done
"$memprov" report "$trace" --by resident --format json >"$report"
while read -r id; do
	"$memprov" report "$trace" --why "$id" >"$dir/out/why-$id" || fail "--why $id exits with $?"
done < <(python3 -c 'import json, sys
print(*(r["id"] for r in json.load(open(sys.argv[1], encoding="utf-8"))["rows"]), sep="\n")' "$report")

python3 - "$report" "$oracle" "$dir/out" <<'END' || fail "a name came through"
import csv
import json
import os
import re
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = json.loads(open(sys.argv[2], encoding="utf-8").read())
folder = sys.argv[3]

def resident(test):
    return sum(r["costs"]["resident"]["value"] for r in report["rows"] if test(r["origin"]))

# The names are there, or nothing is shown.
assert resident(lambda o: "/file" in (o["name"] or "")) == truth["file"]
assert resident(lambda o: any("jitted" in (f["function"] or "") for f in o["stack"])) == truth["jitted"]

MOVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
texts = {name: open(f"{folder}/{name}", encoding="utf-8", newline="").read()  # raises on no UTF-8
         for name in os.listdir(folder)}
for name, text in texts.items():
    found = MOVES.search(text)
    assert not found, (name, found, text[max(0, found.start() - 40):found.start() + 40])
for name in "table", "folded", "csv", "children", "function", "diff-folded":
    assert "jitted" in texts[name], name
for name in "table", "top":
    assert re.match(r"a\?\[31m;[^\n(]* \(\d+\), ", texts[name]), texts[name][:80]
assert "recording a?[31m;" in texts["record.err"], texts["record.err"]
total = report["totals"]["resident"]["value"]
lines = texts["folded"].splitlines()
assert sum(int(re.fullmatch(r".* (\d+)", line)[1]) for line in lines) == total
frames = [line for line in lines if "jitted" in line]
assert len(frames) == 1 and frames[0].rsplit(" ", 1)[0].split(";")[-1].endswith("jitted"), frames
rows = list(csv.DictReader(texts["csv"].splitlines()))
assert len(rows) == len(report["rows"])
assert sum(int(r["resident"]) for r in rows) == total
print("ok   ", len(texts), "texts without a name that moves")
END
