#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""shards.py REPORT ORACLE ENDED DONE

Every resource is what the workload says of it: resident and reserved exactly, touched as a bound,
idle between what it was when the recording was told to end (ENDED, ns) and when it had (DONE).
"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        truth = [json.loads(line) for line in f]
    ended, done = int(sys.argv[3]), int(sys.argv[4])
    rows = {row["origin"]["name"]: row for row in report["rows"] if row["origin"]["kind"] == "resource"}
    wrong = 0

    def expect(what, good, got):
        nonlocal wrong
        wrong += not good
        if not good:
            print("WRONG", what, got)

    for t in truth:
        name = t["resource"]
        if name not in rows:
            expect(name + " has no row", not t["reserved"], t)
            continue
        costs = rows[name]["costs"]
        for column in ("resident", "reserved"):
            v = costs[column]
            expect(f"{name} {column}", v["value"] == t[column] and v.get("exact", 0) == t[column],
                   (v, t[column]))
        v = costs["touched"]
        expect(f"{name} touched", v.get("lo", v["value"]) <= t["touched"] <= v.get("hi", v["value"]),
               (v, t["touched"]))
        expect(f"{name} touched is more than it is", v["value"] <= t["touched"], (v, t["touched"]))
        idle = costs["idle"]
        expect(f"{name} idle", ended - t["used_hi"] <= idle["value"] <= done - t["used_lo"] and
               idle.get("exact") == idle["value"], (idle, ended - t["used_hi"], done - t["used_lo"]))
    expect("a resource nobody has", not set(rows) - {t["resource"] for t in truth}, sorted(rows))
    for column in ("resident", "reserved", "pss"):
        total = report["totals"][column]["value"]
        got = sum(row["costs"][column]["value"] for row in report["rows"])
        # Each row's pss is rounded, the total once.
        slack = len(report["rows"]) if column == "pss" else 0
        expect(f"rows of {column} add up", total - slack <= got <= total, (got, total))
    check = report["check"]["resident"]
    expect("residual", check["residual"] == 0, check)
    print(f"ok    {len(truth)} resources, {len(rows)} with bytes" if not wrong else "failed")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
