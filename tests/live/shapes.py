#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""shapes.py REPORT ORACLE 'WHAT+WHAT=CLASS+CLASS'...

The classes together have at least the bytes that the workload wrote to for these purposes; none of
them where WHAT is empty. All of it is inferred. Shared objects are exact and named by the kernel.
"""
import json
import sys

OBJECTS = {"sysv": "/SYSV", "memfd": "/memfd:alloc-memfd", "anon-shmem": "/dev/zero"}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = json.load(f)["rows"]
    with open(sys.argv[2], encoding="utf-8") as f:
        truth = json.load(f)
    wrong = 0

    def expect(what, good, got):
        nonlocal wrong
        wrong += not good
        print("ok   " if good else "WRONG", what, got)

    def resident(kind, names, part="value"):
        return sum(row["costs"]["resident"].get(part, 0) for row in rows
                   if row["origin"]["kind"] == kind and row["origin"]["name"] in names)

    for rule in sys.argv[3:]:
        what, classes = rule.split("=")
        classes = classes.split("+")
        got = resident("preexisting", classes)
        if what:
            want = sum(truth[w] for w in what.split("+"))
            expect(f"{rule}: at least {want}", got >= want, got)
            evidence = [row["origin"].get("evidence") for row in rows
                        if row["origin"]["name"] in classes]
            expect(f"{rule}: evidence is named", all(evidence), len(evidence))
        else:
            expect(f"{rule}: nothing", not got, got)
        exact = resident("preexisting", classes, "exact")
        expect(f"{rule}: none exact", not exact, exact)
    for what, prefix in OBJECTS.items():
        if what in truth:
            names = [r["origin"]["name"] for r in rows
                     if (r["origin"]["name"] or "").startswith(prefix)]
            got = resident("shmem", names, "exact")
            expect(f"{what}: exactly {truth[what]}", got == truth[what], got)
    return 1 if wrong else 0


sys.exit(main())
