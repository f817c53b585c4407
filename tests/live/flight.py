#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A flight recorder's file: why it was written, and what grew."""
import argparse
import json

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("report")
parser.add_argument("table")
parser.add_argument("kind")
parser.add_argument("--pid", type=int)
parser.add_argument("--limit", type=int)
parser.add_argument("--group")
parser.add_argument("--grown", type=int)
parser.add_argument("--held", type=int, help="before it went on until it was killed")
args = parser.parse_args()
report = json.load(open(args.report, encoding="utf-8"))
table = open(args.table, encoding="utf-8").read().splitlines()
why = report["recording"]["trigger"]
print(why)
print("\n".join(table[:8]))
assert why["kind"] == args.kind, why
assert why["pid"] == args.pid, why
if args.limit is not None:
    assert why["limit"] == args.limit, why
if args.group is not None:
    assert why["cgroup"].rsplit("/", 1)[-1] == args.group, why
    assert why["comm"] == "grow" and f"grow ({args.pid}) was killed" in table[0], table[0]
    assert f"/{args.group} was at its limit" in table[1], table[1]
if args.kind == "rss":
    assert why["value"] > args.limit, why
most = why["grew"][0]
row = next(row for row in report["rows"] if row["id"] == most["id"])
names = [f["function"] for f in row["origin"]["stack"]]
print("most:", names, most)
assert "grow_step" in names, names
assert any("grow_step" in line for line in table[:5]), table[:5]
if args.grown is not None:
    assert most["bytes"] == args.grown and not most["since_picture"], most
    assert row["costs"]["grown"]["exact"] == args.grown, row["costs"]["grown"]
if args.held is not None:
    # All but what the program itself has was charged to it when the limit was met.
    assert most["bytes"] > args.held and args.limit // 2 < most["bytes"] <= args.limit + (1 << 20), most
    assert not row["costs"]["grown"].get("exact") or not most["since_picture"], row["costs"]["grown"]
