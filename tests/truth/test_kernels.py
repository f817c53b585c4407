#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The rule of several kernels judged: two that agree hold it, and each kind of break is found."""
import copy
import unittest

import kernels

PAGE = 4096


def cell(owner, value, exact=True, slack=0, column="resident"):
    lo, hi = (value, value) if exact else (value - slack, value + slack)
    return {"view": "alloc", "process": 0, "kind": "function", "owner": owner, "column": column,
            "truth": 7 * PAGE, "value": value, "exact": exact, "lo": lo, "hi": hi}


def unknown(owner, reason):
    return {k: v for k, v in cell(owner, 0).items() if k not in ("exact", "lo", "hi")} | {
        "value": None, "reason": reason}


def scenario(*cells):
    return {"graded": True, "right": True, "honest": True, "precision": 1, "recall": 1,
            "wrong_exact_bytes": 0, "outside_bytes": 0, "exact_share": 1, "laws_broken": [],
            "cells": list(cells)}


def judge(*results):
    """A scenario "one", as each kernel had it."""
    runs = {f"k{i}": {"release": f"k{i}", "scenarios": {"one": copy.deepcopy(r)}}
            for i, r in enumerate(results)}
    return kernels.judge(runs)


class Rule(unittest.TestCase):
    def breaks(self, *results):
        table = judge(*results)
        self.assertEqual(table["rule"]["holds"], not table["rule"]["broken"])
        kernels.markdown(table)
        return [one["why"] for one in table["rule"]["broken"]]

    def test_the_same_on_all_holds(self):
        same = scenario(cell("a", 7 * PAGE), cell("b", 3 * PAGE, False, PAGE))
        self.assertEqual(self.breaks(same, same, same), [])
        self.assertEqual(judge(same, same, same)["rule"]["compared"], 6)

    def test_two_exact_values_that_differ(self):
        for off in (-PAGE, 1, PAGE):
            self.assertEqual(self.breaks(scenario(cell("a", 7 * PAGE)),
                                         scenario(cell("a", 7 * PAGE + off))),
                             ["both are exact and differ"])

    def test_intervals_must_overlap_and_may_touch(self):
        exact = scenario(cell("a", 7 * PAGE))
        self.assertEqual(self.breaks(exact, scenario(cell("a", 9 * PAGE, False, 2 * PAGE))), [])
        self.assertEqual(self.breaks(exact, scenario(cell("a", 9 * PAGE, False, 2 * PAGE - 1))),
                         ["their intervals do not overlap"])

    def test_where_the_kernels_did_not_do_the_same_each_has_its_own_truth(self):
        other = cell("a", 9 * PAGE) | {"truth": 9 * PAGE}
        self.assertEqual(self.breaks(scenario(cell("a", 7 * PAGE)), scenario(other)), [])
        self.assertEqual(judge(scenario(cell("a", PAGE)), scenario(other))["rule"]["compared"], 0)

    def test_an_unknown_value_says_why(self):
        known = scenario(cell("a", PAGE), unknown("b", "told"))
        self.assertEqual(self.breaks(known, known), [])
        for silent in (None, ""):
            self.assertIn("unknown, without a reason",
                          self.breaks(known, scenario(unknown("a", "told"), unknown("b", silent))))

    def test_no_kernel_has_more_than_twice_the_unknown_of_the_best(self):
        def with_unknown(n):
            return scenario(*(unknown(f"o{i}", "told") if i < n else cell(f"o{i}", PAGE)
                              for i in range(9)))
        self.assertEqual(self.breaks(with_unknown(2), with_unknown(4)), [])
        self.assertEqual(len(self.breaks(with_unknown(2), with_unknown(5))), 1)
        self.assertEqual(len(self.breaks(with_unknown(0), with_unknown(1), with_unknown(1))), 2)

    def test_a_scenario_that_one_did_not_score_counts_for_none(self):
        absent = {"graded": False, "reason": "this kernel has no such call"}
        table = judge(scenario(cell("a", PAGE)), scenario(unknown("a", "told")), absent)
        self.assertTrue(table["rule"]["holds"])
        self.assertIn("one on k2: not scored: this kernel has no such call",
                      kernels.markdown(table))
        self.assertTrue(kernels.is_good(table, "right"))
        self.assertFalse(kernels.is_good(judge(absent | {"trouble": True}), "right"))

    def test_wrong_is_said_in_the_table(self):
        wrong = scenario(cell("a", PAGE)) | {"right": False, "honest": False,
                                             "wrong_exact_bytes": PAGE}
        table = judge(wrong)
        self.assertIn("| one | **wrong**, 4096 B |", kernels.markdown(table))
        self.assertFalse(kernels.is_good(table, "right"))


if __name__ == "__main__":
    unittest.main()
