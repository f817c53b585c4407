#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge estimates of a JSON report by what the workload's functions hold, every byte of it written.

Each byte was a sample with the chance 1 / INTERVAL: the estimate of L bytes is off by more than six
times sqrt(L * INTERVAL) in one of a hundred million runs.
"""
import json
import math
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truths = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line.startswith("{")]
interval = int(sys.argv[3])
wrong = 0 if truths else 1


def bad(*what):
    global wrong
    wrong += 1
    print("WRONG", *what)


def names(row):
    return [(f.get("function") or "").split(".")[0] for f in row["origin"]["stack"]]


for truth in truths:
    rows = [row for row in report["rows"]
            if row["origin"]["kind"] == "malloc" and truth["site"] in names(row)]
    off = 6 * math.sqrt(truth["lives"] * interval)
    for column in ("resident", "live", "reserved"):
        costs = [row["costs"][column] for row in rows]
        got = sum(cost["value"] for cost in costs)
        print(f"     {truth['site']:<15} {column:<9} truth {truth['lives']:>9} estimate {got:>9} "
              f"of {sum(cost.get('n', 0) for cost in costs)} samples")
        if abs(got - truth["lives"]) > off:
            bad(f"by more than {off:.0f}")
        for cost in costs:
            if cost.get("exact") or cost.get("inferred"):
                bad("an estimate is called something else:", cost)
            if not cost["lo"] <= cost["value"] <= cost["hi"]:
                bad("bounds:", cost)
    for row in rows:
        for column in ("freed", "slack", "padding", "touched", "faulted", "faults"):
            if row["costs"][column] is not None:
                bad(column, "is not known of samples:", row["costs"][column])
for column in ("resident", "reserved", "private"):
    rows = sum((row["costs"][column] or {}).get("value", 0) for row in report["rows"])
    if rows != report["totals"][column]["value"]:
        bad(column, "of rows is", rows, "not", report["totals"][column]["value"])
for column in ("resident", "reserved"):
    if report["check"][column]["residual"]:
        bad(column, "residual", report["check"][column]["residual"])
classes = sum((v or {}).get("value", 0) for v in report["classes"].values())
if classes != report["totals"]["resident"]["value"]:
    bad("the classes are", classes)
if report["classes"]["freed"] is not None or report["classes"]["slack"] is not None:
    bad("freed and slack are not known of samples")
sys.exit(1 if wrong else 0)
