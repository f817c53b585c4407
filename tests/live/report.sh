#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# One recording along its time, as of some time, and beside another: a workload that grows by a known
# step between two marks.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
mark() {
	timeout 30 "$memprov" mark -o "$trace" "$1" 2>/dev/null || fail "mark $1 exits with $?"
}
json() { # FILE ARGUMENT...
	local file=$1
	shift
	"$memprov" report --format json "$@" >"$dir/$file" || fail "report $* exits with $?"
}
start_work grow
start_record
mark "before"
go
cp "$oracle" "$dir/one"
mark "between"
go
cp "$oracle" "$dir/two"
stop_record

json whole "$trace"
times=$(python3 -c 'import json, sys
r = json.load(open(sys.argv[1], encoding="utf-8"))["recording"]
marks = {m["text"]: m["time_ns"] for m in r["marks"]}
print(marks["before"] / 1e9, marks["between"] / 1e9, r["duration_ns"] / 1e9 + 1)' "$dir/whole")
read -r before between late <<<"$times"
json before "$trace" --at "$before"
json between "$trace" --at "$between"
"$memprov" report "$trace" --at "$between" >"$dir/table" || fail "--at exits with $?"
grep -q "as of $(printf %.3f "$between") s after the start" "$dir/table" || fail "the table does not say as of when: $(cat "$dir/table")"
"$memprov" report "$trace" --timeline --format json >"$dir/timeline" || fail "--timeline exits with $?"
"$memprov" report "$trace" --timeline --format csv --columns resident,faulted >"$dir/timeline.csv" || fail "--timeline exits with $?"
"$memprov" report "$trace" --timeline >"$dir/timeline.txt" || fail "--timeline exits with $?"
json merged "$trace" "$trace" --group function
json rows "$trace" --rows 2
for group in site node; do
	json $group "$trace" --group $group
done
says 1 "memprov: report: --at: the recording lasted $(python3 -c 'print("%.3f" % (float('"$late"') - 1))') s" \
	"$memprov" report "$trace" --at "$late"
PYTHONDONTWRITEBYTECODE=1 python3 - "$dir" <<'END' || fail "a report is wrong"
import csv
import json
import sys

folder = sys.argv[1]


def load(name):
    return json.load(open(f"{folder}/{name}", encoding="utf-8"))


def held(name):  # what the workload holds then
    return [json.loads(line) for line in open(f"{folder}/{name}", encoding="utf-8") if line[0] == "{"][-1]["resident"]


def of(report, column, test=lambda o: True):
    """Value, lo and hi of the rows of grow_step."""
    cells = [r["costs"][column] for r in report["rows"]
             if any(f["function"] == "grow_step" for f in r["origin"]["stack"]) or r["origin"]["name"] == "grow_step"]
    cells = [c for c in cells if c]
    return (sum(c["value"] for c in cells), sum(c.get("lo", c["value"]) for c in cells),
            sum(c.get("hi", c["value"]) for c in cells))


whole, before, between = load("whole"), load("before"), load("between")
one, two = held("one"), held("two")
assert of(whole, "resident")[0] == two, (of(whole, "resident"), two)
# As of the marks: the first step alone, or nothing, was faulted in; what is resident is bounded.
assert of(before, "faulted")[0] == 0, of(before, "faulted")
value, lo, hi = of(between, "faulted")
assert 0 < value <= one and value <= of(whole, "faulted")[0], (value, one)
value, lo, hi = of(between, "resident")
assert lo <= one <= hi, (lo, one, hi)
for row in between["rows"]:
    cost = row["costs"]["resident"]
    if any(f["function"] == "grow_step" for f in row["origin"]["stack"]):
        assert cost.get("exact", 0) <= one, cost
assert before["recording"]["at_ns"] and whole["recording"]["at_ns"] is None
assert [m["text"] for m in between["recording"]["marks"]] == ["before", "between"][:len(between["recording"]["marks"])]

# Along the time: flows add up to the whole, and stocks are those of pictures.
timeline = load("timeline")
moments = timeline["moments"]
times = [m["time_ns"] for m in moments]
assert times == sorted(times) and len(times) == 30
for column in "faulted", "faults", "touched":
    total = sum(m["values"][column] or 0 for m in moments)
    assert total == whole["totals"][column]["value"], (column, total, whole["totals"][column])
stocks = [m["values"]["resident"] for m in moments if m["values"]["resident"] is not None]
assert stocks[-1] == whole["totals"]["resident"]["value"] and len(stocks) >= 2, stocks
assert stocks[-1] - stocks[0] == whole["totals"]["grown"]["value"]
assert [m["text"] for m in timeline["marks"]] == ["before", "between"]
rows = list(csv.DictReader(open(f"{folder}/timeline.csv", encoding="utf-8")))
assert [r["faulted"] for r in rows] == [str(m["values"]["faulted"]) for m in moments]
text = open(f"{folder}/timeline.txt", encoding="utf-8").read()
assert text.index("mark: before") < text.index("mark: between")

# Twice beside itself: twice of everything, apart by file.
merged = load("merged")
assert len(merged["recordings"]) == 2
assert merged["recordings"][0]["check"]["resident"]["residual"] == whole["check"]["resident"]["residual"]
assert merged["totals"]["resident"]["value"] == 2 * whole["totals"]["resident"]["value"]
assert sum(r["costs"]["resident"]["value"] for r in merged["rows"]) == merged["totals"]["resident"]["value"]
assert of(merged, "resident")[0] == 2 * (two)

cut = load("rows")
assert len(cut["rows"]) == 2 and cut["rows_total"] == len(whole["rows"]) and cut["rows"] == whole["rows"][:2]
site = [r for r in load("site")["rows"] if (r["origin"]["name"] or "").startswith("grow_step ")]
assert len(site) == 1 and site[0]["costs"]["resident"]["value"] == two, site
assert "grow.c:" in site[0]["origin"]["name"], site[0]["origin"]
nodes = load("node")
known = sum(c["value"] for n, c in nodes["totals"].items() if n.startswith("node") and c)
assert sum(r["costs"]["resident"]["value"] for r in nodes["rows"]) == known
print("ok    --at, --timeline, two files, --rows, --group")
END

# The same file from a pipe; folded stacks keep their width; a reader that has enough.
[ "$("$memprov" report -i - --format json <"$trace" | md5sum)" = "$(md5sum <"$dir/whole")" ] || fail "-i - differs"
# shellcheck disable=SC2002 # a pipe on purpose
[ "$(cat "$trace" | "$memprov" report -i - --format json | md5sum)" = "$(md5sum <"$dir/whole")" ] || fail "a pipe differs"
total=$("$memprov" report -q "$trace" --by resident | awk '{ n += $NF } END { print n }')
[ "$("$memprov" report -q "$trace" --by resident --rows 1 | awk '{ n += $NF } END { print NR, n }')" = "2 $total" ] ||
	fail "folded stacks that are cut lose their width"
says 0 "" "$memprov" report -q "$trace" --by resident
[ "$( ("$memprov" report "$trace" || true) | head -1 | wc -l)" = 1 ] || fail "head"
"$memprov" report --why grow_step "$trace" >"$dir/why" || fail "--why grow_step exits with $?"
for words in "kind mmap" "at grow_step" "mapping calls by" "pages by" "residual 0 B" "exact $(sed -n 's/.*"resident":\([0-9]*\).*/\1/p' "$dir/two")"; do
	grep -qF -- "$words" "$dir/why" || fail "--why lacks '$words': $(cat "$dir/why")"
done
says 1 "memprov: report: no row 'nosuch': neither an id, as --format json has them, nor the name or function of an owner" \
	"$memprov" report --why nosuch "$trace"

# On a terminal, through PAGER where that is set.
if command -v script >/dev/null; then
	printf -v command 'PAGER=%q %q report %q' "sed s/^/paged:/" "$memprov" "$trace"
	script -qec "$command" "$dir/typescript" >/dev/null </dev/null || fail "script exits with $?"
	grep -q "^paged:.*OWNER" "$dir/typescript" || fail "no pager: $(cat "$dir/typescript")"
	printf -v command 'PAGER= %q report %q' "$memprov" "$trace"
	script -qec "$command" "$dir/typescript" >/dev/null </dev/null || fail "script exits with $?"
	! grep -q "paged" "$dir/typescript" || fail "a pager without PAGER"
	printf -v command 'PAGER=true %q report %q' "$memprov" "$trace"
	script -qec "$command" "$dir/typescript" >/dev/null </dev/null || fail "a pager that was left early: exit $?"
fi
for format in json csv folded; do
	"$memprov" report "$trace" --format $format >"$dir/out" || fail "$format"
	! grep -q "paged" "$dir/out" || fail "a pager in a file"
done

# What was meant.
for pair in "repot=did you mean report?" "report --fitler x=did you mean --filter?" \
	"diff --fail-no x=did you mean --fail-on?" "record --max-sise 1=did you mean --max-size?" \
	"top --grup site=did you mean --group?" "report --group cite $trace=did you mean site" \
	"report --by residnet $trace=the nearest is resident"; do
	# Words on purpose.
	# shellcheck disable=SC2086
	! "$memprov" ${pair%%=*} 2>"$dir/err" >"$dir/out" || fail "${pair%%=*} works"
	grep -qF -- "${pair#*=}" "$dir/err" || fail "${pair%%=*} does not say '${pair#*=}': $(cat "$dir/err")"
	[ ! -s "$dir/out" ] || fail "a mistake prints a result"
done
stop_work
