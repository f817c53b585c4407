#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""forker.py REPORT PARENT CHILD: pages two processes share, judged by /proc/PID/pagemap.

Both wait, so what pagemap and smaps say now is what the last picture saw.
"""
import json
import struct
import sys

ZERO_PAGE = 1 << 24


def flags(pfn):
    with open("/proc/kpageflags", "rb", buffering=0) as f:
        f.seek(pfn * 8)
        word = f.read(8)
    return struct.unpack("Q", word)[0] if len(word) == 8 else ZERO_PAGE


def frames(pid):
    """Of every page that Rss counts."""
    pages = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for line in maps:
            if "[vvar" in line or "[vsyscall]" in line:
                continue
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            pagemap.seek(start // 4096 * 8)
            words = pagemap.read((end - start) // 4096 * 8)
            pages += [w & (1 << 55) - 1 for w, in struct.iter_unpack("Q", words) if w >> 63]
    return {pfn for pfn in pages if pfn and not flags(pfn) & ZERO_PAGE}


def private(pid):
    """At least and at most: clean pages are of files that other processes map too, and leave."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        kib = {line.split(":")[0]: int(line.split()[1]) for line in f if line.endswith("kB\n")}
    dirty = kib["Private_Dirty"] << 10
    return dirty, dirty + ((kib["Private_Clean"] + kib["Shared_Clean"]) << 10)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    pids = [int(p) for p in sys.argv[2:]]
    held = {p: frames(p) for p in pids}
    wrong = 0

    def expect(what, truth, got, good):
        nonlocal wrong
        wrong |= not good
        print(f"{'ok' if good else 'WRONG'} {what}: truth {truth}, memprov {got}")

    keys = [(row["id"], row["origin"]["pid"]) for row in report["rows"]]
    expect("rows with an id and pid of their own", len(keys), len(set(keys)), len(keys) == len(set(keys)))
    both = len(set.union(*held.values())) * 4096
    got = report["totals"]["unique"]["value"]
    expect("unique", both, got, both == got)
    for p in pids:
        rows = [row["costs"] for row in report["rows"] if row["origin"]["pid"] == p]
        got = sum(r["private"]["value"] for r in rows)
        low, high = private(p)
        expect(f"private of {p}", f"{low} to {high}", got, low <= got <= high)
        alone = len(held[p] - set.union(*(held[q] for q in pids if q != p))) * 4096
        exact = sum(r["unique"].get("exact", 0) for r in rows)
        expect(f"unique of {p} called exact, at most", alone, exact, exact <= alone)
        low = sum(r["unique"].get("lo", r["unique"]["value"]) for r in rows)
        expect(f"unique of {p}, lo", alone, low, low <= alone)
        high = sum(r["unique"].get("hi", r["unique"]["value"]) for r in rows)
        expect(f"unique of {p}, hi", len(held[p]) * 4096, high, high >= len(held[p]) * 4096)
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
