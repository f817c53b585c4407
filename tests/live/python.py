#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""python.py REPORT ORACLE: what each function of a Python program mapped is its row's, and the
Python frames of that row's stack are those that the program saw, in their order, with their lines.
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        truth = [json.loads(line) for line in f]
    wrong = 0
    for t in truth:
        rows = [row for row in report["rows"] if row["costs"]["reserved"]["value"] == t["pages"] * 4096
                and row["origin"]["kind"] == "mmap"]
        stacks = [[[f["function"], f["line"]] for f in row["origin"]["stack"]
                   if (f["file"] or "").endswith((".py", "<made>"))
                   or (f["file"] or "").startswith("<frozen")] for row in rows]
        # The line of hold() itself is that of its call of mmap.
        good = [row for row, stack in zip(rows, stacks) if stack and stack[0][0] == "hold"
                and stack[1:] == t["stack"]]
        if len(good) != 1:
            wrong += 1
            print("WRONG", t["pages"], "pages: the program saw", t["stack"], "and the rows have", stacks)
            continue
        v = good[0]["costs"]["resident"]
        if v["value"] != t["pages"] * 4096 or v.get("exact") != v["value"]:
            wrong += 1
            print("WRONG", t["pages"], "pages:", v)
    if not truth:
        wrong = 1
    check = report["check"]["resident"]
    if check["residual"]:
        wrong += 1
        print("WRONG residual", check)
    print("failed" if wrong else f"ok    {len(truth)} stacks")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
