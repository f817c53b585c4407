#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare our decoder's lines with those of perf script -F pid,tid,addr,data_src,weight,ip,phys_addr
field by field: same.py OURS PERF [--no-weight]. Both are printed in an order of their own."""
import re
import sys

LINE = re.compile(r"^\s*(\d+)/(\d+)\s+([0-9a-f]+)\s+([0-9a-f]+) \|.*?BLK\s+\S+\s+(.*)$")


def main():
    weighs = "--no-weight" not in sys.argv
    with open(sys.argv[1], encoding="utf-8") as f:
        ours = [tuple(int(w, 10 if i < 2 else 16) for i, w in enumerate(line.split()))
                for line in f]
    theirs = []
    with open(sys.argv[2], encoding="utf-8") as f:
        for line in f:
            if not line.strip() or "PERF_RECORD" in line:
                continue
            m = LINE.match(line)
            if not m:
                print("not understood:", line.rstrip())
                return 1
            rest = m.group(5).split()
            weight = int(rest.pop(0)) if weighs else 0
            theirs.append((int(m.group(1)), int(m.group(2)), int(rest[0], 16),
                           int(m.group(3), 16), int(m.group(4), 16), weight, int(rest[1], 16)))
    if not ours or sorted(ours) != sorted(theirs):
        print(f"{len(ours)} samples of ours, {len(theirs)} of perf's")
        for got, want in zip(sorted(ours), sorted(theirs)):
            if got != want:
                print("ours ", got, "\nperf ", want)
                break
        return 1
    print(f"ok    {len(ours)} samples are the same")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
