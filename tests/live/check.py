#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge a memprov JSON report by a workload's own account of what it did.

Every owner of the oracle must have the reserved, resident and swapped bytes it
counted, touched is a lower bound, and the rows add up to the kernel's figure.
"""
import argparse
import json


def load_oracle(path, step, pid):
    """The last line of each owner and process, up to the step."""
    truths = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("{"):
                truth = json.loads(line)
                truth.setdefault("pid", pid)
                if step is None or truth.get("step") == step:
                    truths[truth["owner"], truth["pid"]] = truth
    return list(truths.values())


def belongs(row, truth):
    origin = row["origin"]
    if origin.get("pid") not in (None, truth["pid"], str(truth["pid"])):
        return False
    if "object" in truth:
        return (origin["kind"] in ("file", "shmem")
                and truth["object"] in (origin.get("name") or ""))
    names = [(f.get("function") or "").split(".")[0] for f in origin.get("stack") or []]
    return truth["owner"] in names


def total(rows, column, part="value"):
    values = [row["costs"].get(column) for row in rows]
    values = [v.get(part, 0) for v in values if v is not None]
    return sum(values) if values else None


class Judge:
    def __init__(self):
        self.wrong = 0

    def expect(self, what, truth, got, good):
        self.wrong += not good
        got = "-" if got is None else got
        print(f"{'ok   ' if good else 'WRONG'} {what:<32} truth {truth:>12} memprov {got:>12}")


def judge_owner(judge, report, truth):
    rows = [row for row in report["rows"] if belongs(row, truth)]
    columns = ["resident"] if "object" in truth else ["reserved", "resident"]
    if truth.get("swapped"):
        columns.append("swapped")
    for column in columns:
        got = total(rows, column)
        good = got == truth[column] or (got is None and not rows and truth[column] == 0)
        judge.expect(f"{truth['owner']} {column}", truth[column], got, good)
        exact = total(rows, column, "exact") or 0
        if exact > truth[column]:
            judge.expect(f"{truth['owner']} {column} called exact", truth[column], exact, False)
    touched = total(rows, "touched")
    judge.expect(f"{truth['owner']} touched (at most)", truth["touched"], touched,
                 touched is None or touched <= truth["touched"])


def judge_residual(judge, report, rss, one_process):
    for column in ("resident", "reserved", "swapped"):
        check = report["check"].get(column)
        if check is None or check.get("residual") is None:
            if column == "resident":
                judge.expect("resident is judged", "yes", str(check), False)
            continue
        parts = check["attributed"] + check["unattributed"]
        judge.expect(f"{column} residual", 0, check["residual"], check["residual"] == 0)
        judge.expect(f"{column} attributed + unattributed", check["kernel"], parts,
                     parts == check["kernel"])
        if column == "resident" and rss is not None and one_process:
            judge.expect("resident is the Rss read here", rss, check["kernel"],
                         rss == check["kernel"])
            rows = total(report["rows"], "resident")
            judge.expect("rows add up to the Rss", rss, rows, rows == rss)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report")
    parser.add_argument("oracle", nargs="?")
    parser.add_argument("--step", type=int, help="judge only lines of this step")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--rss", type=int, help="Rss read while the target stood still")
    args = parser.parse_args()

    with open(args.report, encoding="utf-8") as f:
        report = json.load(f)
    judge = Judge()
    truths = load_oracle(args.oracle, args.step, args.pid) if args.oracle else []
    if args.oracle and not truths:
        judge.expect("the oracle has lines", "yes", "none", False)
    for truth in truths:
        judge_owner(judge, report, truth)
    targets = report["recording"].get("targets") or []
    judge_residual(judge, report, args.rss, len(targets) == 1)
    return 1 if judge.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
