# SPDX-License-Identifier: GPL-2.0-only
"""The same scenarios on several kernels: one table scenario x kernel x grade, and the rule: what two
kernels both call exact is equal; else their intervals overlap, or a value is unknown and says why;
no kernel has more than twice the unknown values of the best. See memprov-truth(5)."""
import itertools

SCHEMA = "memprov-truth-kernels/1"
MANY = 20


def key_of(cell):
    return tuple(cell[k] for k in ("view", "process", "kind", "owner", "column"))


def cells_of(result):
    return {key_of(cell): cell for cell in result.get("cells", ())} if result["graded"] else {}


def compare(one, two):
    """What is wrong between two cells of one truth; None: nothing."""
    if one["value"] is None or two["value"] is None:
        return None
    if one["exact"] and two["exact"]:
        return None if one["value"] == two["value"] else "both are exact and differ"
    overlap = max(one["lo"], two["lo"]) <= min(one["hi"], two["hi"])
    return None if overlap else "their intervals do not overlap"


def break_of(scenario, key, kernels, cells, why):
    said = {kernel: cell and [cell["value"], cell.get("lo"), cell.get("hi")]
            for kernel, cell in zip(kernels, cells)}
    return {"scenario": scenario, "cell": list(key), "kernels": list(kernels), "why": why,
            "said": said}


def judge_pair(scenario, kernels, results, broken):
    """Cells that both were asked for; where the kernels did not do the same each has a truth of its
    own, and was judged by that. Returns how many were compared."""
    one, two = (cells_of(result) for result in results)
    compared = 0
    for key in one.keys() & two.keys():
        if one[key]["truth"] != two[key]["truth"]:
            continue
        compared += 1
        why = compare(one[key], two[key])
        if why:
            broken.append(break_of(scenario, key, kernels, (one[key], two[key]), why))
    return compared


def judge_nulls(runs, names, broken):
    """Unknown values in the scenarios that all kernels have scored, by kernel."""
    everywhere = [name for name in names
                  if all(run["scenarios"].get(name, {"graded": False})["graded"]
                         for run in runs.values())]
    nulls = {}
    for kernel, run in runs.items():
        nulls[kernel] = 0
        for name in everywhere:
            for key, cell in cells_of(run["scenarios"][name]).items():
                nulls[kernel] += cell["value"] is None
                if cell["value"] is None and not cell["reason"]:
                    broken.append(break_of(name, key, (kernel,), (cell,),
                                           "unknown, without a reason"))
    best = min(nulls.values(), default=0)
    for kernel, n in nulls.items():
        if n > 2 * best:
            broken.append({"kernels": [kernel],
                           "why": f"{n} unknown values, more than twice the {best} of the best"})
    return nulls


def judge(runs):
    """runs: {kernel: {"release", "scenarios": {name: result of score.py}}}."""
    names = list(dict.fromkeys(name for run in runs.values() for name in run["scenarios"]))
    broken, compared = [], 0
    for name in names:
        have = [(kernel, run["scenarios"][name]) for kernel, run in runs.items()
                if name in run["scenarios"]]
        for (k, a), (l, b) in itertools.combinations(have, 2):
            compared += judge_pair(name, (k, l), (a, b), broken)
    nulls = judge_nulls(runs, names, broken)
    return {"schema": SCHEMA,
            "kernels": [{"key": kernel, "release": run["release"], "unknown": nulls[kernel],
                         "reason": run.get("reason")} for kernel, run in runs.items()],
            "scenarios": [{"name": name, "kernels": {
                kernel: brief(run["scenarios"][name]) for kernel, run in runs.items()
                if name in run["scenarios"]}} for name in names],
            "rule": {"compared": compared, "broken": broken, "holds": not broken}}


def brief(result):
    if not result["graded"]:
        return {"graded": False, "reason": result["reason"],
                "trouble": result.get("trouble", False)}
    keep = ("graded", "right", "honest", "precision", "recall", "wrong_exact_bytes",
            "outside_bytes", "exact_share", "laws_broken")
    return {key: result[key] for key in keep} | {
        "unknown": sum(cell["value"] is None for cell in result["cells"])}


def word(result):
    """The grade, in a word or two."""
    if result is None or not result["graded"]:
        return "**failed**" if result and result["trouble"] else "-"
    if result["right"]:
        return "exact"
    if not result["honest"]:
        return f"**wrong**, {result['wrong_exact_bytes']} B"
    return (f"inferred: P {result['precision']:.3f}, R {result['recall']:.3f}, "
            f"exact {result['exact_share']:.2f}")


def markdown(table):
    kernels = [k["key"] for k in table["kernels"]]
    lines = ["| scenario | " + " | ".join(kernels) + " |", "|---" * (len(kernels) + 1) + "|"]
    notes = [f"- {k['key']}: {k['reason']}" for k in table["kernels"] if k["reason"]]
    for scenario in table["scenarios"]:
        results = [scenario["kernels"].get(kernel) for kernel in kernels]
        lines.append(f"| {scenario['name']} | " + " | ".join(map(word, results)) + " |")
        notes += [f"- {scenario['name']} on {kernel}: not scored: {result['reason']}"
                  for kernel, result in zip(kernels, results) if result and not result["graded"]]
    unknown = ", ".join(f"{k['unknown']} on {k['key']}" for k in table["kernels"])
    rule = table["rule"]
    lines += ["", "Kernels: " + ", ".join(k["release"] or k["key"] for k in table["kernels"]) +
              f". {rule['compared']} pairs of cells compared, {len(rule['broken'])} break the "
              f"rule; unknown values: {unknown}.", ""]
    lines += notes
    lines += [f"- rule: {one['why']}: {one.get('scenario', '')} {one.get('cell', '')} "
              f"{one.get('said', one['kernels'])}" for one in rule["broken"][:MANY]]
    return "\n".join(lines)


def is_good(table, verdict):
    results = [r for s in table["scenarios"] for r in s["kernels"].values()]
    return (table["rule"]["holds"] and not any(r.get("trouble") for r in results)
            and all(r[verdict] for r in results if r["graded"]))
