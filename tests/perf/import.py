#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge imported samples: import.py REPORT TRUTH OBJECT START END [OBJECT START END]... TRUTH is what
make.py says is in the file. Each object has the samples of its addresses, all their weight and all
that were served remotely; intervals hold that; the rest is nobody's."""
import json
import sys

REMOTE = 0xF00


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        samples = [[int(w, 10 if i < 2 else 16) for i, w in enumerate(line.split())]
                   for line in f]
    objects = sys.argv[3:]
    wrong = False
    for name, start, end in zip(objects[0::3], objects[1::3], objects[2::3]):
        mine = [s for s in samples if int(start, 16) <= s[3] < int(end, 16)]
        want = {"samples": len(mine), "latency": sum(s[5] for s in mine),
                "remote": sum(bool(s[4] >> 5 & REMOTE) for s in mine)}
        rows = [r for r in report["rows"] if name in (r["origin"]["name"] or "")]
        for column, value in want.items():
            got = rows[0]["costs"][column] if len(rows) == 1 else None
            good = got and got["value"] == got.get("sampled") == value
            good = good and got["lo"] <= value <= got["hi"] and got["lo"] < got["hi"]
            wrong |= not good
            print(f"{'ok   ' if good else 'WRONG'} {name} {column}: truth {value}, memprov {got}")
    total = report["totals"]["samples"]["value"]
    placed = report["recording"]["samples"]["placed"]
    if total != placed or report["recording"]["samples"]["total"] != len(samples):
        print("WRONG totals", total, placed, len(samples))
        wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
