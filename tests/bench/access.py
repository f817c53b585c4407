#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A line of scripts/bench access: access.py REPORT PERIOD RATE HOT SLOW WORST; access.py --median
FILE gives the median line, column by column."""
import json
import statistics
import sys

MIB = 1 << 20


def main():
    if sys.argv[1] == "--median":
        with open(sys.argv[2], encoding="utf-8") as f:
            rows = [line.strip().split(",") for line in f]
        columns = zip(*rows)
        print(",".join([rows[0][0]] + [
            "-" if "-" in c else f"{statistics.median(map(float, c)):.2f}"
            for c in list(columns)[1:]]))
        return
    path, period, rate, hot, slow, worst = sys.argv[1:7]
    with open(path, encoding="utf-8") as f:
        report = json.load(f)
    out = [period, rate, worst, "-", "-", f"{(int(hot) + int(slow)) / MIB:.2f}", "-", "-", "-"]
    if report:
        rows = [r for r in report["rows"] if r["origin"]["name"] == "anonymous memory"]
        access = report["recording"]["access"]
        out[3:5] = [f"{access['clear_ns'] / 1e6:.2f}", str(access["clears"])]
        for i, column in enumerate(("touched", "cold", "access")):
            out[6 + i] = f"{sum(r['costs'][column]['value'] for r in rows) / MIB:.2f}"
    print(",".join(out))


if __name__ == "__main__":
    main()
