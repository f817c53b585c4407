# SPDX-License-Identifier: GPL-2.0-only
"""whole.py REPORT NAME: at least 99% of the resident bytes that have a stack have one that reaches
the start of the program or of a thread."""
import json
import sys

STARTS = {"_start", "__clone3", "clone3", "__clone", "clone", "_start_c", "runtime.goexit", "_dl_start_user"}
report = json.load(open(sys.argv[1], encoding="utf-8"))
whole = part = 0
bad = {}
for row in report["rows"]:
    origin = row["origin"]
    resident = row["costs"]["resident"]["value"]
    if not origin["stack"] or not resident:
        continue
    last = origin["stack"][-1]["function"]
    if origin["unwound_end"] == "whole" and (last in STARTS or last is None):
        whole += resident
    else:
        part += resident
        names = [f["function"] or f"{(f['module'] or '?').split('/')[-1]}" for f in origin["stack"]]
        key = (origin["unwound_end"], origin["unwound_by"], " < ".join(names))
        bad[key] = bad.get(key, 0) + resident
share = whole / (whole + part) if whole + part else 0
print(f"{sys.argv[2]}: {share:.2%} of {(whole + part) >> 10} KiB; {report['recording']['stacks']}")
for (end, by, names), n in sorted(bad.items(), key=lambda b: -b[1])[:5]:
    print(f"  {n >> 10} KiB {end}, by {by}: {names}")
raise SystemExit(share < 0.99 or whole < 1 << 20)
