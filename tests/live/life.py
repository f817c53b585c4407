#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What a workload says of its pages' lives against the report: each column of an owner in a process
is what the owner counted; two numbers are bounds of it."""
import json
import subprocess
import sys

memprov, trace, oracle = sys.argv[1:]
report = json.loads(subprocess.run([memprov, "report", trace, "--format", "json"], check=True,
                                   stdout=subprocess.PIPE).stdout)
wrong = 0
for line in open(oracle, encoding="utf-8"):
    truth = json.loads(line)
    owner, pid = truth.pop("owner"), truth.pop("pid")
    rows = [row["costs"] for row in report["rows"] if row["origin"].get("pid") == pid
            and owner in [f["function"] for f in row["origin"]["stack"]]]
    for column, want in truth.items():
        values = [row[column] for row in rows if row[column]]
        got = sum(v["value"] for v in values) if values else None
        exact = sum(v.get("exact", 0) for v in values)
        low, high = want if isinstance(want, list) else (want, want)
        good = got is not None and low <= got <= high and exact <= high
        wrong += not good
        print(f"{'ok   ' if good else 'WRONG'} {owner} {pid} {column}: {want}, memprov {got}, exact {exact}")
# Whose it is is known of all that happened.
for column in ("reclaimed", "refaulted", "major-faults"):
    strays = [row["origin"] for row in report["rows"]
              if row["costs"][column] and row["costs"][column]["value"]
              and row["origin"]["kind"] == "unattributed"]
    wrong += len(strays)
    for origin in strays:
        print("WRONG", column, "of", origin)
sys.exit(wrong != 0)
