#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""formats.py DIR: the same report in every format, against what the demo says it holds."""
import collections
import csv
import json
import re
import sys

import pprof

folder = sys.argv[1]
wrong = 0


def load(name):
    with open(f"{folder}/{name}", encoding="utf-8", newline="") as file:
        return file.read()


def check(what, got, want):
    global wrong
    if got != want:
        print(f"WRONG {what}: {got}, not {want}")
        wrong = 1
    else:
        print(f"ok    {what}: {want}")


truths = [json.loads(line) for line in load("oracle").splitlines() if line.startswith("{")]
held = {t["owner"]: t["resident"] for t in truths if "object" not in t}
objects = {t["object"]: t["resident"] for t in truths if "object" in t}


def compare(what, resident):
    """resident: (names of a stack, bytes) of all rows."""
    sums = collections.Counter()
    for names, value in resident:
        for name in set(names):
            sums[name] += value
    check(f"{what} owners", {o: sums[o] for o in held}, held)
    found = {o: sum(v for n, v in sums.items() if o in n) for o in objects}
    check(f"{what} objects", found, objects)


report = json.loads(load("json"))
additive = {n for n, c in report["columns"].items() if c["additive"]}
known = {n for n in additive if any(r["costs"][n] for r in report["rows"])}
total = report["totals"]["resident"]["value"]

profile = pprof.read(f"{folder}/pprof")
compare("pprof", [(s["stack"], s["values"]["resident"]) for s in profile["samples"]])
check("pprof sample types", {t for t, _ in profile["types"]}, known)
check("pprof units", {u for _, u in profile["types"]}, {"bytes", "count", "nanoseconds"})
check("pprof default", profile["default"], "resident")
check("pprof duration", profile["duration"], report["recording"]["duration_ns"])
check("pprof sum", sum(s["values"]["resident"] for s in profile["samples"]), total)
for grade in "exact", "inferred":
    got = sum(s["values"]["resident"] for s in profile["samples"] if s["labels"]["grade"] == grade)
    check(f"pprof {grade}", got, report["totals"]["resident"].get(grade, 0))
kinds = collections.Counter()
for row in report["rows"]:
    kinds[row["origin"]["kind"]] += row["costs"]["resident"]["value"]
labelled = collections.Counter()
for sample in profile["samples"]:
    labelled[sample["labels"]["kind"]] += sample["values"]["resident"]
check("pprof kinds", +labelled, +kinds)
pid = report["recording"]["targets"][0]["pid"]
check("pprof pids", {s["labels"]["pid"] for s in profile["samples"]}, {pid})
check("pprof losses", sum("lost 0 events" in c for c in profile["comments"]), 1)
check("pprof build ids", all(re.fullmatch("[0-9a-f]{8,}", m["build_id"]) for m in profile["mappings"]
                             if m["file"].endswith("/demo") or "libc.so" in m["file"]), True)
check("pprof maps the program", any(m["file"].endswith("/demo") for m in profile["mappings"]), True)
for sample in profile["samples"]:
    for name in sample["labels"].get("unknown", "").split(","):
        assert not name or sample["values"][name] == 0, sample

rows = list(csv.DictReader(load("csv").splitlines()))
compare("csv", [(r["stack"].split(";") + [r["name"]], int(r["resident"] or 0)) for r in rows])
check("csv rows", len(rows), len(report["rows"]))
of = {r["id"]: r for r in rows}
for row in report["rows"]:
    for name, cost in row["costs"].items():
        got = of[row["id"]].get(name)
        want = None if got is None else "" if cost is None else str(cost["value"])
        if got != want:
            check(f"csv {row['id']} {name}", got, want)

scope = json.loads(load("speedscope"))
frames = [f["name"] for f in scope["shared"]["frames"]]
profiles = {p["name"]: p for p in scope["profiles"]}
check("speedscope profiles", set(profiles), known)
check("speedscope active", scope["profiles"][scope["activeProfileIndex"]]["name"], "resident")
p = profiles["resident"]
check("speedscope sum", (p["endValue"], sum(p["weights"])), (total, total))
compare("speedscope", [([frames[i] for i in s], w) for s, w in zip(p["samples"], p["weights"])])
check("speedscope root", {frames[s[0]] for s in p["samples"]}, {"demo"})

page = load("html")
data = json.loads(re.search(r'<script type="application/json" id="data">(.*)</script>', page).group(1))
column = [c["name"] for c in data["columns"]].index("resident")
value = lambda v: v[0] if isinstance(v, list) else v or 0
compare("html", [([data["names"][n] for n in r[2]], value(r[3][column])) for r in data["rows"]])
check("html by who touched", sum(max(0, value(r[3][column])) for r in data["other"]), total)
strips = data["strips"]["all"]
check("html strips", (sum(s[4] for s in strips), data["strips"]["left_out"]), (total, 0))
check("html reserved", sum(s[2] for s in strips), report["totals"]["reserved"]["value"])
check("html huge", sum(s[6] for s in strips), report["totals"]["thp"]["value"])
touched = [s for s in strips if any("E" <= b <= "H" for b in s[7])]
check("html touched", len(touched) > 3, True)
check("html timeline", data["timeline"]["moments"][-1]["values"]["resident"], total)
check("html loads nothing", re.findall(r'(?:src|href)="(?!data:)[^"]*"|https?://|@import|url\(', page), [])
check("html contract", "residual 0 B" in data["contract"], True)
sys.exit(wrong)
