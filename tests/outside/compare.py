#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""compare.py EVIDENCE REPORT: what the library says is what report --format json says."""
import json
import sys


def value(text):
    """A report's value as the library's six numbers: what is absent is 0, lo and hi the value."""
    if text is None:
        return None
    bounds = [text.get("lo", text["value"]), text.get("hi", text["value"])]
    return [text["value"]] + [text.get(p, 0) for p in ("exact", "inferred", "sampled")] + bounds


def rows_of(report):
    for row in report["rows"]:
        origin = row["origin"]
        yield dict({c: value(v) for c, v in row["costs"].items()}, row=row["id"],
                   kind=origin["kind"], pid=origin["pid"], frames=len(origin["stack"]))


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    with open(sys.argv[2], encoding="utf-8") as f:
        report = json.load(f)
    total = {c: value(v) for c, v in report["totals"].items()}
    total["total"] = int(report["recording"]["complete"])
    want = list(rows_of(report)) + [total]
    want += [{"check": c, **{k: v[k] for k in ("kernel", "attributed", "unattributed",
                                               "residual", "status")}}
             for c, v in report["check"].items()]
    for ours, theirs in zip(want, lines):
        if ours != theirs:
            sys.exit(f"report says  {ours}\nlibrary says {theirs}")
    if len(want) != len(lines):
        sys.exit(f"report has {len(want)} lines, the library {len(lines)}")
    nulls = sum(v is None for line in lines for v in line.values())
    if not nulls or not any(line.get("frames") for line in lines):
        sys.exit("nothing compared: no null or no stack")
    print(f"ok    {len(lines)} lines, {nulls} without evidence")


main()
