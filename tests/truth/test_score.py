#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The scorer judged: a right report is right, and each kind of corruption is caught, by whichever
byte it begins. A report is made up here, with what its oracle and the kernel say."""
import copy
import random
import unittest

from score import FLOWS, STOCKS, Oracle, score

PAGE = 4096
SEEDS = range(20)
PARENT, CHILD = 4711, 4712
MODULE = "/build/truth/scenarios"
# pid, function, reserved, resident, swapped, thp pages
OWNERS = ((PARENT, "first_owner", 1009, 401, 0, 0), (PARENT, "second_owner", 307, 307, 0, 0),
          (PARENT, "gone_owner", 0, 0, 0, 0), (PARENT, "huge_owner", 1024, 1024, 0, 1024),
          (PARENT, "swapped_owner", 211, 97, 83, 0), (CHILD, "first_owner", 1009, 401, 0, 0),
          (CHILD, "child_owner", 53, 47, 0, 0))
REST = {"preexisting": 131, "file": 700, "stack": 7, "special": 1}
REST_KINDS = {"preexisting": "preexisting", "file": "file", "stack": "stack", "special": "special"}


def exact(value):
    return {"value": value, "exact": value} if value else {"value": 0}


def inferred(value):
    return {"value": value, "inferred": value, "lo": 0, "hi": value}


def row(pid, kind, name, stack, costs):
    return {"id": f"{kind}-{name}-{pid}",
            "origin": {"kind": kind, "name": name, "pid": pid,
                       "stack": [{"function": f, "module": MODULE, "address": "0x1"} for f in stack]},
            "costs": {column: costs.get(column) for column in STOCKS + FLOWS}}


def owner_row(view, pid, name, reserved, resident, swapped, thp):
    grade = exact if view == "alloc" else inferred
    costs = {column: grade(pages * PAGE) for column, pages in
             (("reserved", reserved), ("resident", resident), ("swapped", swapped), ("thp", thp),
              ("private", resident), ("shared", 0), ("pss", resident))}
    for column in FLOWS:
        costs[column] = inferred((resident if column != "cow" else 0) * PAGE)
    return row(pid, "mmap" if view == "alloc" else "fault", None,
               [f"{name}(char*, unsigned long)", "scenario_test()", "main"], costs)


def report_of(view):
    rows = [owner_row(view, *owner) for owner in OWNERS if owner[2]]
    for pid in (PARENT, CHILD):
        for name, pages in REST.items():
            rows.append(row(pid, REST_KINDS[name], f"/lib/{name}", [],
                            {"resident": exact(pages * PAGE), "reserved": exact(pages * PAGE),
                             "swapped": exact(0)}))
    report = {"rows": rows, "classes": {}, "check": {}, "columns": {},
              "recording": {"targets": [{"pid": PARENT}, {"pid": CHILD}]}}
    for name, pages in REST.items():
        report["classes"][name] = exact(2 * pages * PAGE)
    report["classes"]["live"] = exact(sum(o[3] for o in OWNERS) * PAGE)
    report["classes"] |= {"shmem": exact(0), "unattributed": exact(0), "freed": None, "slack": None}
    check(report)
    return report


def check(report):
    """The report's own law: what its rows add up to, against the kernel."""
    for column in ("resident", "reserved", "swapped"):
        attributed = sum(r["costs"][column]["value"] for r in report["rows"]
                         if r["origin"]["kind"] != "unattributed")
        rest = sum(r["costs"][column]["value"] for r in report["rows"]
                   if r["origin"]["kind"] == "unattributed")
        kernel = sum(k[column] for k in (kernel_of(PARENT), kernel_of(CHILD)))
        report["check"][column] = {"kernel": kernel, "attributed": attributed,
                                   "unattributed": rest, "residual": kernel - attributed - rest}


def kernel_of(pid):
    owned = [o for o in OWNERS if o[0] == pid]
    rest = sum(REST.values())
    return {"kernel": pid, "by": "smaps", "resident": (sum(o[3] for o in owned) + rest) * PAGE,
            "reserved": (sum(o[2] for o in owned) + rest) * PAGE,
            "swapped": sum(o[4] for o in owned) * PAGE, "vmas": [],
            "classes": {"file": REST["file"] * PAGE, "stack": REST["stack"] * PAGE,
                        "special": REST["special"] * PAGE, "shmem": 0,
                        "anonymous": (sum(o[3] for o in owned) + REST["preexisting"]) * PAGE}}


def oracle_lines():
    lines = [{"process": PARENT}, {"process": CHILD}, kernel_of(PARENT), kernel_of(CHILD)]
    for pid, name, reserved, resident, swapped, thp in OWNERS:
        costs = {"resident": resident * PAGE, "swapped": swapped * PAGE, "thp": thp * PAGE}
        lines.append({"owner": name, "kind": "function", "pid": pid, "view": "fault",
                      "costs": costs})
        lines.append({"owner": name, "kind": "function", "pid": pid, "view": "alloc",
                      "costs": costs | {"reserved": reserved * PAGE, "private": resident * PAGE,
                                        "shared": 0, "pss": resident * PAGE,
                                        "touched": resident * PAGE, "faulted": resident * PAGE,
                                        "cow": 0}})
    return lines


def add(report, index, column, amount, grade="exact"):
    v = report["rows"][index]["costs"][column]
    v["value"] += amount
    v[grade] = v.get(grade, 0) + amount


def owners(report, view="mmap"):
    return [i for i, r in enumerate(report["rows"]) if r["origin"]["kind"] == view]


def two_owners(report, rng):
    return rng.sample(owners(report), 2)


# Each takes the two reports and a random source, and spoils one number.

def byte_moved(reports, rng):
    a, b = two_owners(reports["alloc"], rng)
    column = rng.choice(("resident", "reserved", "private", "pss"))
    amount = rng.choice((1, PAGE, 3 * PAGE))
    add(reports["alloc"], a, column, -amount)
    add(reports["alloc"], b, column, amount)


def generation_confused(reports, rng):
    """The bytes of the second owner of an address are given to the first, who has gone."""
    r = reports["alloc"]["rows"][rng.choice(owners(reports["alloc"]))]
    r["origin"]["stack"][0]["function"] = "gone_owner(char*, unsigned long)"


def page_charged_twice(reports, rng):
    add(reports["alloc"], rng.choice(owners(reports["alloc"])), "resident", PAGE)
    check(reports["alloc"])


def plugged_into_unattributed(reports, rng):
    """Pages were lost, and a row was made of what was missing."""
    report, pages = reports["alloc"], rng.randint(1, 40)
    add(report, rng.choice(owners(report)), "resident", -pages * PAGE)
    report["rows"].append(row(PARENT, "unattributed", "[unattributed]", [],
                              {"resident": exact(pages * PAGE), "reserved": exact(0),
                               "swapped": exact(0)}))
    report["classes"]["live"] = exact(report["classes"]["live"]["value"] - pages * PAGE)
    report["classes"]["unattributed"] = exact(pages * PAGE)
    check(report)


def plugged_into_preexisting(reports, rng):
    """The same, where nobody looks."""
    report, amount = reports["alloc"], rng.randint(1, 40) * PAGE
    add(report, rng.choice(owners(report)), "resident", -amount)
    rest = next(i for i, r in enumerate(report["rows"]) if r["origin"]["kind"] == "preexisting")
    add(report, rest, "resident", amount)
    report["classes"]["live"] = exact(report["classes"]["live"]["value"] - amount)
    report["classes"]["preexisting"] = exact(report["classes"]["preexisting"]["value"] + amount)
    check(report)


def plugged_by_the_kernels_figure(reports, rng):
    """Rows are missing, and the check was made to say that nothing is."""
    report = reports["alloc"]
    rest = next(i for i, r in enumerate(report["rows"]) if r["origin"]["kind"] == "file")
    add(report, rest, "resident", -rng.randint(1, 40) * PAGE)
    check(report)
    law = report["check"]["resident"]
    law["kernel"], law["residual"] = law["attributed"] + law["unattributed"], 0


def row_dropped(reports, rng):
    del reports["alloc"]["rows"][rng.choice(owners(reports["alloc"]))]


def stranger_added(reports, rng):
    """A row of a function of the program that mapped nothing."""
    pages = rng.randint(1, 40)
    reports["alloc"]["rows"].append(
        row(PARENT, "mmap", None, ["scenario_test()", "main"],
            {"resident": exact(pages * PAGE), "reserved": exact(pages * PAGE), "swapped": exact(0)}))


def process_confused(reports, rng):
    row_of = [r for r in reports["alloc"]["rows"] if r["origin"]["stack"]]
    row_of[rng.randrange(len(row_of))]["origin"]["pid"] = rng.choice((PARENT, CHILD)) ^ 1024


def unknown_as_zero(reports, rng):
    """What was not seen is called exactly nothing."""
    r = reports["alloc"]["rows"][rng.choice(owners(reports["alloc"]))]
    r["costs"][rng.choice(("resident", "reserved"))] = {"value": 0}


def inference_called_exact(reports, rng):
    """A wrong inference is honest; the same called exact is not."""
    r = reports["fault"]["rows"][rng.choice(owners(reports["fault"], "fault"))]
    wrong = r["costs"]["resident"]["value"] + rng.choice((-1, 1)) * PAGE
    r["costs"]["resident"] = {"value": wrong, "exact": wrong}


def interval_without_the_truth(reports, rng):
    r = reports["fault"]["rows"][rng.choice(owners(reports["fault"], "fault"))]
    truth = r["costs"]["touched"]["value"]
    r["costs"]["resident"] = {"value": truth + PAGE, "inferred": truth + PAGE, "lo": truth + PAGE,
                              "hi": truth + 2 * PAGE}


def lower_bound_too_high(reports, rng):
    add(reports["alloc"], rng.choice(owners(reports["alloc"])), "touched", PAGE, "inferred")
    for r in reports["alloc"]["rows"]:
        v = r["costs"]["touched"]
        if v and v["value"] != v["hi"]:
            v["lo"] = v["hi"] = v["value"]


def nothing_called_exact(reports, rng):
    """The easy way to have no wrong exact byte."""
    for r in reports["alloc"]["rows"]:
        for column in STOCKS:
            if r["costs"][column]:
                r["costs"][column] = inferred(r["costs"][column]["value"])
    rng.random()


def swapped_as_resident(reports, rng):
    swapped = next(i for i in owners(reports["alloc"])
                   if reports["alloc"]["rows"][i]["costs"]["swapped"]["value"])
    amount = rng.randint(1, 83) * PAGE
    add(reports["alloc"], swapped, "swapped", -amount)
    add(reports["alloc"], swapped, "resident", amount)


def huge_lost(reports, rng):
    huge = next(i for i in owners(reports["alloc"])
                if reports["alloc"]["rows"][i]["costs"]["thp"]["value"])
    add(reports["alloc"], huge, "thp", -rng.choice((1, 2)) * 512 * PAGE)


def class_confused(reports, rng):
    classes = reports["alloc"]["classes"]
    a, b = rng.sample(("live", "file", "stack", "preexisting"), 2)
    classes[a] = exact(classes[a]["value"] - PAGE)
    classes[b] = exact(classes[b]["value"] + PAGE)


CORRUPTIONS = (byte_moved, generation_confused, page_charged_twice, plugged_into_unattributed,
               plugged_into_preexisting, plugged_by_the_kernels_figure, row_dropped, stranger_added,
               process_confused, unknown_as_zero, inference_called_exact,
               interval_without_the_truth, lower_bound_too_high, nothing_called_exact,
               swapped_as_resident, huge_lost, class_confused)
# Wrong numbers called exact: these must be counted as such, in bytes.
LIES = (byte_moved, generation_confused, page_charged_twice, stranger_added, unknown_as_zero,
        inference_called_exact, swapped_as_resident)


def judged(corrupt=None, seed=0):
    reports = {view: report_of(view) for view in ("alloc", "fault")}
    if corrupt:
        corrupt(reports, random.Random(seed))
    return score(reports, Oracle(oracle_lines()))


class Scorer(unittest.TestCase):
    def test_a_right_report_is_right(self):
        result = judged()
        self.assertEqual(result["faults"], [])
        self.assertEqual(result["laws_broken"], [])
        self.assertTrue(result["right"], result)
        self.assertEqual((result["precision"], result["recall"], result["exact_share"]), (1, 1, 1))

    def test_every_corruption_is_caught(self):
        for corrupt in CORRUPTIONS:
            for seed in SEEDS:
                with self.subTest(corruption=corrupt.__name__, seed=seed):
                    self.assertFalse(judged(corrupt, seed)["right"])

    def test_lies_are_counted_in_bytes(self):
        for corrupt in LIES:
            for seed in SEEDS:
                with self.subTest(corruption=corrupt.__name__, seed=seed):
                    self.assertGreater(judged(corrupt, seed)["wrong_exact_bytes"], 0)

    def test_one_page_too_many_is_one_page(self):
        reports = {view: report_of(view) for view in ("alloc", "fault")}
        add(reports["alloc"], owners(reports["alloc"])[0], "resident", PAGE)
        result = score(reports, Oracle(oracle_lines()))
        column = result["columns"]["alloc.resident"]
        pages = sum(o[3] for o in OWNERS)
        self.assertEqual(column["wrong_exact_bytes"], PAGE)
        self.assertAlmostEqual(column["precision"], pages / (pages + 1))
        self.assertEqual(column["recall"], 1)
        self.assertEqual(result["multiply_attributed_bytes"], PAGE)

    def test_what_is_not_known_is_missed_and_no_lie(self):
        reports = {view: report_of(view) for view in ("alloc", "fault")}
        first = owners(reports["alloc"])[0]
        pages = reports["alloc"]["rows"][first]["costs"]["resident"]["value"] // PAGE
        reports["alloc"]["rows"][first]["costs"]["resident"] = None
        reports["alloc"]["rows"].append(row(PARENT, "unattributed", "[unattributed]", [],
                                            {"resident": inferred(pages * PAGE),
                                             "reserved": exact(0), "swapped": exact(0)}))
        for r in reports["alloc"]["rows"]:
            r["costs"]["resident"] = r["costs"]["resident"] or exact(0)
        reports["alloc"]["rows"][first]["costs"]["resident"] = inferred(0) | {"hi": pages * PAGE}
        column = score(reports, Oracle(oracle_lines()))["columns"]["alloc.resident"]
        self.assertEqual(column["wrong_exact_bytes"], 0)
        self.assertLess(column["recall"], 1)

    def test_a_sum_of_which_a_part_is_not_known_has_no_bound_above(self):
        few = inferred((OWNERS[0][3] - 9) * PAGE)
        for unknown, outside in ((False, 9 * PAGE), (True, 0)):
            reports = {view: report_of(view) for view in ("alloc", "fault")}
            reports["alloc"]["rows"][owners(reports["alloc"])[0]]["costs"]["touched"] = few
            if unknown:
                other = owner_row("alloc", *OWNERS[0][:2], 0, 0, 0, 0)
                other["costs"]["touched"] = None
                reports["alloc"]["rows"].append(other)
            result = score(reports, Oracle(oracle_lines()))
            self.assertEqual(result["outside_bytes"], outside)

    def test_a_disputed_oracle_is_no_evidence(self):
        self.assertIsNotNone(Oracle([{"disputed": "pagemap disagrees", "pid": 1}]).not_scored)

    def test_a_bound_is_an_interval(self):
        lines = oracle_lines()
        for line in lines:
            if line.get("owner") == "second_owner":
                truth = line["costs"]["resident"]
                line["costs"] = line["costs"] | {"resident": [truth - PAGE, truth + PAGE]}
        reports = {view: report_of(view) for view in ("alloc", "fault")}
        self.assertEqual(score(reports, Oracle(lines))["wrong_exact_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
