#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge the malloc rows of a JSON report by what the workload's functions allocated.

--columns: which of reserved, live and freed; --exact: those must be exact; --some: a process whose
numbers may be inferred. Nothing may be called exact beyond the truth, and the classes are the Rss.
"""
import argparse
import json


def names(row):
    return [(f.get("function") or "").split(".")[0].split("(")[0] for f in row["origin"]["stack"]]


def total(rows, column, part):
    return sum((row["costs"][column] or {}).get(part, 0) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report")
    parser.add_argument("oracle")
    parser.add_argument("--columns", default="reserved,live,freed")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--announced", action="store_true",
                        help="not by the allocator: its own mappings are not known")
    parser.add_argument("--inferred", default="", help="columns that may be inferred all the same")
    args = parser.parse_args()
    with open(args.report, encoding="utf-8") as f:
        report = json.load(f)
    wrong = judged = 0
    with open(args.oracle, encoding="utf-8") as f:
        truths = [json.loads(line) for line in f if line.startswith("{")]
    for truth in truths:
        rows = [row for row in report["rows"]
                if row["origin"]["kind"] == "malloc" and truth["site"] in names(row)
                and row["origin"]["pid"] == truth["pid"]]
        for column in args.columns.split(","):
            got = total(rows, column, "value")
            exact = total(rows, column, "exact")
            judged += 1
            good = got == truth[column] and exact <= truth[column]
            if args.exact and column not in args.inferred:
                good = good and exact == truth[column]
            wrong += not good
            print(f"{'ok   ' if good else 'WRONG'} {truth['site']:<10} {column:<9} truth "
                  f"{truth[column]:>9} memprov {got:>9} exact {exact:>9}")
    if not judged:
        raise SystemExit("the oracle has no lines")
    for column in ("resident", "reserved"):
        check = report["check"][column]
        if check["residual"] != 0:
            wrong += 1
            print(f"WRONG {column}: residual {check['residual']}")
    classes = sum((v or {}).get("value", 0) for v in report["classes"].values())
    if classes != report["totals"]["resident"]["value"]:
        wrong += 1
        print(f"WRONG the classes are {classes}, not {report['totals']['resident']['value']}")
    for column in ("live", "freed", "slack"):
        if report["totals"][column]["value"] != report["classes"][column]["value"]:
            wrong += 1
            print(f"WRONG {column}: the column is not the class")
        if column != "live" and report["classes"][column] is None:
            wrong += 1
            print(f"WRONG {column} is unknown")
    print("classes", {k: v and v["value"] for k, v in report["classes"].items()})
    raise SystemExit(1 if wrong else 0)


main()
