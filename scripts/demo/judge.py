#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare a memprov JSON report with what the demo counted itself.

usage: judge.py REPORT.json ORACLE [reduced]

reduced: recorded without root, an owner may be unknown but never wrong.
"""
import json
import sys


def owner_rows(report, truth):
    """Rows of one owner: by object name, else by a function of the stack."""
    for row in report["rows"]:
        origin = row["origin"]
        if "object" in truth:
            if (origin["kind"] in ("file", "shmem")
                    and truth["object"] in (origin.get("name") or "")):
                yield row
        elif origin["kind"] == "mmap":
            names = [(f.get("function") or "").split(".")[0]
                     for f in origin.get("stack") or []]
            if truth["owner"] in names:
                yield row


def total(rows, column):
    """Sum of a column, or None when no row has evidence."""
    values = [row["costs"].get(column) for row in rows]
    values = [v["value"] for v in values if v is not None]
    return sum(values) if values else None


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip().splitlines()[2])
    reduced = sys.argv[3:] == ["reduced"]
    with open(sys.argv[1], encoding="utf-8") as f:
        report = json.load(f)
    with open(sys.argv[2], encoding="utf-8") as f:
        lines = [json.loads(line) for line in f if line.startswith("{")]
    truths = [t for t in lines if t["phase"] == 2]
    if not truths:
        sys.exit("judge: no phase 2 in the oracle: let the demo finish")

    def show(value):
        return "-" if value is None else str(value)

    print(f"{'OWNER':<22} {'COLUMN':<9} {'TRUTH':>12} {'MEMPROV':>12}")
    right = wrong = 0
    for truth in truths:
        rows = list(owner_rows(report, truth))
        good = True
        for column in ["resident"] if "object" in truth else ["reserved", "resident"]:
            got = total(rows, column)
            same = got == truth[column]
            good = good and same
            unknown = reduced and got is None
            wrong += not same and not unknown
            print(f"{truth['owner']:<22} {column:<9} {truth[column]:>12} "
                  f"{show(got):>12}  {'ok' if same else 'unknown' if unknown else 'WRONG'}")
        got = total(rows, "touched")
        bound = got is None or got <= truth["touched"]
        good = good and bound
        wrong += not bound
        print(f"{truth['owner']:<22} {'touched':<9} {truth['touched']:>12} "
              f"{show(got):>12}  {'ok (lower bound)' if bound else 'WRONG'}")
        right += good

    check = report["check"].get("resident") or {}
    residual = check.get("residual")
    print(f"{right}/{len(truths)} owners right, residual {show(residual)} B")
    if residual is None:
        print(f"judge: resident is {check.get('status', 'absent')}: {check.get('reason')}")
    enough = right > 0 if reduced else right == len(truths)
    return 0 if enough and not wrong and residual == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
