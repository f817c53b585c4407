# SPDX-License-Identifier: GPL-2.0-only
"""The scorer: a memprov report against an oracle, cell by cell. See memprov-truth(5).

A cell is (view, process, owner, column). It knows nothing of memprov but its JSON.
"""
STOCKS = ("resident", "reserved", "swapped", "thp", "shared", "private", "pss")
FLOWS = ("touched", "faulted", "cow")
CLASSES = ("live", "file", "shmem", "stack", "special", "preexisting", "unattributed")
EXACT_SHARE = 0.95
BOOKKEEPING = "Book::"
NOBODY = ("nobody", "")  # a row that says it does not know whose it is


class Oracle:
    """The lines of a run: what the program counted, and what the kernel said of it, stopped."""

    def __init__(self, lines):
        self.cells = {}        # (view, pid, kind, owner) -> {column: truth}
        self.asked = {}        # (pid, owner) -> bytes asked for and not given back
        self.ranges = []       # (pid, start, end, owner)
        self.names = {}        # (kind, pid) -> owners
        self.ever = {}         # (pid, owner) -> bytes it has ever mapped
        self.code = []         # (start, end, function): where a trace without names needs one
        self.kernel = {}       # pid -> what smaps says
        self.pids = []
        self.closed = True     # nothing else in the program maps while it is recorded
        self.not_scored = None
        self.killed = None     # the recorder was: before the end of what was done, or after
        self.by_pagemap = False
        for line in lines:
            self.add(line)
        if self.killed:
            self.cut()

    def add(self, line):
        if "not_scored" in line:
            self.not_scored = line["not_scored"]
        elif "disputed" in line:
            self.not_scored = f"the oracle is disputed: {line['disputed']}"
        elif "process" in line:
            self.pids.append(line["process"])
            self.closed = self.closed and line.get("closed", True)
        elif "killed" in line:
            self.killed = line["killed"]
        elif "code" in line:
            self.code.append((int(line["start"], 16), int(line["end"], 16), line["code"]))
        elif "kernel" in line:
            self.kernel[line["kernel"]] = line
        elif "owner" in line:
            self.add_owner(line)

    def add_owner(self, line):
        self.by_pagemap = self.by_pagemap or line.get("by") == "pagemap"
        self.cells[line["view"], line["pid"], line["kind"], line["owner"]] = line["costs"]
        self.names.setdefault((line["kind"], line["pid"]), set()).add(line["owner"])
        if line["view"] != "alloc":
            return
        self.ever[line["pid"], line["owner"]] = line.get("ever", 0)
        if line["kind"] == "function":
            self.asked[line["pid"], line["owner"]] = line["costs"].get("reserved", 0)
        for start, end in line.get("ranges", ()):
            self.ranges.append((line["pid"], int(start, 16), int(end, 16), line["owner"]))


    def cut(self):
        """Flows end where the file does; if some of what was done may not be in it, no owner has
        more than it ever had."""
        for costs in self.cells.values():
            for column in FLOWS:
                costs.pop(column, None)
        if self.killed == "after":
            return
        for (view, pid, _, owner), costs in self.cells.items():
            for column in costs:
                costs[column] = [0, self.ever[pid, owner]] if view == "alloc" else [0, 1 << 62]

    def function_at(self, address):
        return next((f for start, end, f in self.code if start <= address < end), "")


def plain(function):
    return function.replace("(anonymous namespace)::", "").split("(")[0].split(".")[0]


def row_owner(row, oracle):
    """(kind, owner) of a row; None: not judged by name; stray: the program's, of nobody in it."""
    origin = row["origin"]
    if origin["kind"] in ("file", "shmem"):
        for name in oracle.names.get(("object", origin.get("pid")), ()):
            if name in (origin.get("name") or ""):
                return "object", name
        return None
    if origin["kind"] == "unattributed":
        return NOBODY
    if origin["kind"] not in ("mmap", "brk", "fault"):
        return None
    if not origin.get("stack"):
        return NOBODY
    functions = oracle.names.get(("function", origin.get("pid")), ())
    for frame in origin.get("stack") or ():
        function = plain(frame.get("function") or oracle.function_at(int(frame["address"], 16)))
        if function.startswith(BOOKKEEPING):
            return None
        if function in functions:
            return "function", function
    if oracle.closed and origin["kind"] != "fault":
        return "stray", origin.get("name") or "[no frame of an owner]"
    return None


class Claim:
    """What the report says of a cell: the sum over its rows."""

    def __init__(self):
        self.value = self.exact = self.lo = self.hi = 0
        self.known = False
        self.open = False
        self.gap = False  # of a row it is not known: the sum may be any number above

    def add(self, v):
        if v is None:
            self.gap = True
            return
        self.known = True
        self.value += v["value"]
        self.exact += v.get("exact", 0)
        self.lo += v.get("lo", v["value"])
        self.hi += v.get("hi", v["value"])
        self.open = self.open or "lo" in v or v.get("exact", 0) != v["value"]


def claims_of(report, oracle, view):
    claims = {}
    for row in report["rows"]:
        owner = row_owner(row, oracle)
        if owner is None:
            continue
        for column in STOCKS + FLOWS:
            key = (view, row["origin"].get("pid"), *owner, column)
            claims.setdefault(key, Claim()).add(row["costs"].get(column))
    return claims


def bounds(truth):
    return truth if isinstance(truth, list) else (truth, truth)


def judge_cell(claim, truth, nobodys=0):
    """Bytes right, too many, too few, called exact wrongly, and outside the interval. What is
    missing of an exact number is a lie, but for what rows of nobody may have of it."""
    lo, hi = bounds(truth)
    value = claim.value
    right = min(value, hi)
    excess = max(0, value - hi)
    missing = max(0, lo - value)
    wrong_exact = max(0, claim.exact - hi)
    outside = 0
    if claim.known and not claim.open and not claim.gap:
        wrong_exact = max(wrong_exact, missing - nobodys)
    elif claim.known:
        outside = max(0, claim.lo - hi, 0 if claim.gap else lo - claim.hi - nobodys)
    return {"right": right, "excess": excess, "missing": missing, "wrong_exact": wrong_exact,
            "outside": outside, "exact": min(claim.exact, hi), "truth": hi}


def ratio(part, whole):
    return part / whole if whole else 1.0


class Tally:
    """Cells of one column of one view."""

    def __init__(self):
        self.sum = {"right": 0, "excess": 0, "missing": 0, "wrong_exact": 0, "outside": 0,
                    "exact": 0, "truth": 0}
        self.cells = 0

    def add(self, cell):
        self.cells += 1
        for key, value in cell.items():
            self.sum[key] += value

    def result(self):
        s = self.sum
        precision = ratio(s["right"], s["right"] + s["excess"])
        recall = ratio(s["right"], s["right"] + s["missing"])
        return {"cells": self.cells, "truth_bytes": s["truth"], "precision": precision,
                "recall": recall, "f1": ratio(2 * precision * recall, precision + recall),
                "wrong_exact_bytes": s["wrong_exact"], "outside_bytes": s["outside"],
                "exact_share": ratio(s["exact"], s["truth"])}


def why_null(report, view, column):
    """The reason that the report itself gives for a cell without a value; None: it gives none."""
    known = report["columns"].get(column) or {}
    if not known.get("available", True):
        return known.get("reason")
    if report["recording"].get("loss", {}).get("total"):
        return f"{report['recording']['loss']['total']} events lost"
    capability = "fault" if view == "fault" else "map"
    return next((hook["reason"] for hook in report["recording"].get("hooks", ())
                 if hook["capability"] == capability and hook.get("reason")), None)


def cell_of(report, key, truth, claim, order):
    """What other kernels may be compared with. No row of an owner that has nothing is no cell."""
    view, pid, kind, owner, column = key
    if not claim.known and not bounds(truth)[1]:
        return None
    cell = {"view": view, "process": order.get(pid), "kind": kind, "owner": owner,
            "column": column, "truth": truth, "value": claim.value if claim.known else None}
    if not claim.known:
        return cell | {"reason": why_null(report, view, column)}
    exact = not claim.open and claim.exact == claim.value
    return cell | {"exact": exact, "lo": claim.lo, "hi": claim.hi}


def judge_view(report, oracle, view, tallies, faults, cells):
    claims = claims_of(report, oracle, view)
    order = {pid: i for i, pid in enumerate(dict.fromkeys(key[1] for key in oracle.cells))}
    truths = {}
    for (v, pid, kind, owner), costs in oracle.cells.items():
        if v == view:
            for column, truth in costs.items():
                truths[view, pid, kind, owner, column] = truth
    owners = {key[:4] for key in truths}
    nobodys = {(key[1], key[4]): claim.value for key, claim in claims.items()
               if key[2:4] == NOBODY}
    for key in claims:
        if key[2:4] == NOBODY:
            continue
        # What the oracle does not know of an owner it does know is not judged; of nobody it is 0.
        if key[:4] not in owners and key[-1] in STOCKS:
            truths[key] = 0
    for key, truth in truths.items():
        column = key[-1]
        claim = claims.get(key, Claim())
        cell = judge_cell(claim, truth, nobodys.get((key[1], column), 0))
        tallies.setdefault((view, column), Tally()).add(cell)
        cells.append(cell_of(report, key, truth, claim, order))
        bad = cell["wrong_exact"] or cell["outside"]
        if column in STOCKS:
            bad = bad or cell["excess"] or cell["missing"]
        if bad:
            faults.append({"view": view, "pid": key[1], "owner": key[3], "column": column,
                           "truth": truth, "memprov": claim.value if claim.known else None,
                           "exact": claim.exact, "wrong_exact": cell["wrong_exact"],
                           "outside": cell["outside"]})


def judge_classes(report, oracle, tallies, faults):
    """Every resident byte is in one class; a byte plugged in anywhere shows here."""
    if len(oracle.kernel) < len(oracle.pids):
        return
    truth = {name: sum(k["classes"][name] for k in oracle.kernel.values())
             for name in ("file", "shmem", "stack", "special")}
    anonymous = sum(k["classes"]["anonymous"] for k in oracle.kernel.values())
    if not oracle.closed:
        # What a program start maps for itself may be called special.
        truth["special"] = [truth["special"], truth["special"] + anonymous]
    else:
        truth["unattributed"] = 0
        live = [sum(ends) for ends in zip(*(
            bounds(costs["resident"]) for (view, pid, kind, _), costs in oracle.cells.items()
            if view == "alloc" and kind == "function" and pid in oracle.pids))] or [0, 0]
        truth["live"] = live
        truth["preexisting"] = [anonymous - live[1], anonymous - live[0]]
    for name, value in truth.items():
        claim = Claim()
        claim.add(report["classes"].get(name))
        cell = judge_cell(claim, value)
        tallies.setdefault(("class", "resident"), Tally()).add(cell)
        if cell["excess"] or cell["missing"]:
            faults.append({"view": "class", "owner": name, "column": "resident", "truth": value,
                           "memprov": claim.value if claim.known else None, "exact": claim.exact,
                           "wrong_exact": cell["wrong_exact"], "outside": cell["outside"]})


def total(report, column):
    return sum(row["costs"][column]["value"] for row in report["rows"]
               if row["costs"].get(column) is not None)


def judge_laws(report, oracle):
    """The rows add up to what the kernel said, read by this judge; and the report says so too."""
    broken = []
    if len(oracle.kernel) < len(oracle.pids) or not oracle.kernel:
        return broken
    for column in ("resident", "reserved", "swapped"):
        kernel = sum(k[column] for k in oracle.kernel.values())
        rows = total(report, column)
        if rows != kernel:
            broken.append(f"{column}: rows {rows}, kernel {kernel}")
        check = report["check"].get(column) or {}
        if check.get("residual") is None:
            continue
        said = check["kernel"] - check["attributed"] - check["unattributed"]
        if (said != check["residual"] or check["kernel"] != kernel
                or check["attributed"] + check["unattributed"] != rows):
            broken.append(f"{column}: the report's own check says kernel {check['kernel']}, "
                          f"sum {check['attributed'] + check['unattributed']}, "
                          f"residual {check['residual']}")
    return broken


def unattributed(report):
    return sum(row["costs"]["resident"]["value"] for row in report["rows"]
               if row["origin"]["kind"] == "unattributed" and row["costs"].get("resident"))


def multiply(report, oracle):
    """Bytes in more rows than the kernel counts them: a page of two processes is in two, rightly."""
    kernel = sum(k["resident"] for k in oracle.kernel.values())
    return max(0, total(report, "resident") - kernel if kernel else 0)


def lowest(tallies, key, keep):
    values = [t.result()[key] for (view, column), t in tallies.items()
              if keep(view, column) and t.sum["truth"]]
    return min(values, default=1.0)


def baseline_score(predicted, oracle):
    tally = Tally()
    for (view, pid, kind, owner), costs in oracle.cells.items():
        if view == "alloc" and "resident" in costs:
            claim = Claim()
            claim.add({"value": predicted.get((pid, owner), 0)})
            tally.add(judge_cell(claim, costs["resident"]))
    result = tally.result()
    return {key: result[key] for key in ("precision", "recall", "f1")}


def baselines(oracle):
    """allocation: whoever asked for bytes has them, all of them. smaps: each VMA's Rss, and the
    name of whoever has most of it, which smaps does not give: the best it could do."""
    predicted = {}
    for vma in [v | {"pid": pid} for pid, k in oracle.kernel.items() for v in k["vmas"]]:
        most = None
        for pid, start, end, owner in oracle.ranges:
            covered = min(end, vma["end"]) - max(start, vma["start"])
            if pid == vma["pid"] and covered > 0 and (most is None or covered > most[0]):
                most = (covered, owner)
        if most:
            key = (vma["pid"], most[1])
            predicted[key] = predicted.get(key, 0) + vma["rss"]
    return {"allocation": baseline_score(oracle.asked, oracle),
            "smaps": baseline_score(predicted, oracle)}


def forget_unseen(report, oracle):
    """The laws are about the processes that the report says it is about."""
    seen = {target["pid"] for target in report["recording"]["targets"]}
    if 0 in seen:  # a process whose birth was lost
        return
    oracle.kernel = {pid: kernel for pid, kernel in oracle.kernel.items() if pid in seen}
    oracle.pids = [pid for pid in oracle.pids if pid in seen]


def score(reports, oracle):
    """reports: {"alloc": report, "fault": report}."""
    forget_unseen(reports["alloc"], oracle)
    tallies, faults, cells = {}, [], []
    judge_classes(reports["alloc"], oracle, tallies, faults)
    for view, report in reports.items():
        judge_view(report, oracle, view, tallies, faults, cells)
    stock = lambda view, column: view == "alloc" and column in STOCKS
    laws = judge_laws(reports["alloc"], oracle)
    result = {
        "graded": True,
        "precision": lowest(tallies, "precision", stock),
        "recall": lowest(tallies, "recall", stock),
        "f1": lowest(tallies, "f1", stock),
        "wrong_exact_bytes": sum(t.sum["wrong_exact"] for t in tallies.values()),
        "exact_share": lowest(tallies, "exact_share", stock),
        "closed": oracle.closed,
        "lost": reports["alloc"]["recording"].get("loss", {}).get("total", 0),
        "unattributed_bytes": unattributed(reports["alloc"]),
        "multiply_attributed_bytes": multiply(reports["alloc"], oracle),
        "outside_bytes": sum(t.sum["outside"] for t in tallies.values()),
        "laws_broken": laws,
        "truth_by": "pagemap" if oracle.by_pagemap else "count",
        "columns": {f"{view}.{column}": tally.result()
                    for (view, column), tally in sorted(tallies.items())},
        "baselines": baselines(oracle),
        "faults": faults,
        "cells": [cell for cell in cells if cell],
    }
    conclude(result)
    return result


def conclude(result):
    result["honest"] = is_honest(result)
    result["right"] = is_right(result)


def is_right(result):
    """What an exact scenario without loss must have."""
    return (result["precision"] == 1 and result["recall"] == 1
            and result["columns"].get("class.resident", {"precision": 1})["precision"] == 1
            and result["exact_share"] >= EXACT_SHARE and is_honest(result)
            and not (result["closed"] and result["unattributed_bytes"])
            and not result["multiply_attributed_bytes"])


def is_honest(result):
    """What every run must have, whatever was lost."""
    return (not result["wrong_exact_bytes"] and not result["outside_bytes"]
            and not result["laws_broken"])
