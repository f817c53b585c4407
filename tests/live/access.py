#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge touched and cold of a report by what the workload says it touched and left alone.

Where nothing else may have changed accessed bits they are exactly that, and exact. Otherwise
touched is a lower bound and cold an upper one, and neither is called exact; DAMON, which leaves the
bits it clears with the page, takes nothing away.
"""
import argparse
import json


def belongs(row, truth):
    if "object" in truth:
        return truth["object"] in (row["origin"]["name"] or "")
    names = [(f["function"] or "").split(".")[0] for f in row["origin"]["stack"]]
    return truth["function"] in names


def total(rows, column, part, other=0):
    return sum(r["costs"][column].get(part, r["costs"][column][other] if other else 0)
               for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report")
    parser.add_argument("oracle")
    parser.add_argument("--doubt", help="this must be among what may have changed them")
    parser.add_argument("--inferred", action="store_true", help="nothing can be exact here")
    args = parser.parse_args()
    with open(args.report, encoding="utf-8") as f:
        report = json.load(f)
    with open(args.oracle, encoding="utf-8") as f:
        truths = [json.loads(line) for line in f if line.startswith("{")]
    doubts = report["recording"]["access"]["doubts"]
    print("doubts:", ", ".join(doubts) or "none")
    wrong = not truths or bool(args.doubt and args.doubt not in doubts)
    certain = not doubts and not args.inferred
    # These may take a bit away; a reclaim asked for in another group does not, and the workload
    # stands still while its bits are cleared.
    lossy = [d for d in doubts if d not in ("damon", "gap", args.doubt)]
    for truth in truths:
        rows = [r for r in report["rows"] if belongs(r, truth)]
        for column in ("touched", "cold"):
            want = truth[column]
            value, exact = total(rows, column, "value"), total(rows, column, "exact")
            low, high = total(rows, column, "lo", "value"), total(rows, column, "hi", "value")
            good = bool(rows) and low <= want <= high
            if lossy:
                good = good and (value <= want if column == "touched" else value >= want)
            else:
                good = good and value == want
            good = good and exact == (want if certain else 0)
            wrong |= not good
            print(f"{'ok   ' if good else 'WRONG'} {truth.get('object') or truth['function']:<14}"
                  f"{column:<8} truth {want:>10} memprov {value:>10}"
                  f" exact {exact:>10} [{low}, {high}]")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
