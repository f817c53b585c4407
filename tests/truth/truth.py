#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges memprov by programs that know what they did. Prints a Markdown table, with --json
memprov-truth/1; see memprov-truth(5). Exits with 1 when a scenario is judged wrong."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import run
from score import Oracle, is_right, score

SCHEMA = "memprov-truth/1"
HERE = os.path.dirname(os.path.abspath(__file__))
ON_DISK = {"ext2/ext3", "xfs", "btrfs", "ext4"}


def scenarios_of(build):
    listed = subprocess.run([f"{build}/truth/scenarios", "list"], capture_output=True, check=True)
    return [json.loads(line) for line in listed.stdout.decode().splitlines()]


def swap_is_on():
    with open("/proc/swaps", encoding="utf-8") as f:
        return len(f.readlines()) > 1


def is_on_disk(folder):
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, check=True)
    return kind.stdout.decode().strip() in ON_DISK


def lacking(scenario, folder):
    """Why it cannot run here; None: it can."""
    needs = scenario["needs"]
    if "swap" in needs and not swap_is_on():
        return "no swap is on: MEMPROV_TEST_SWAP=1 adds 64 MiB while it runs"
    if "disk" in needs and not is_on_disk(folder):
        return f"{folder} is not on a disk: TMPDIR names another"
    return None


def judge(args, scenario, folder):
    """One scenario, recorded and scored."""
    trace = f"{folder}/{scenario['name']}.trace"
    argv = [f"{args.build}/truth/scenarios", scenario["name"], str(args.seed), folder]
    lines, status = run.record(args.memprov, argv, trace)
    oracle = Oracle(lines)
    if oracle.not_scored:
        return {"graded": False, "reason": oracle.not_scored}
    reports = {view: run.report(args.memprov, trace, view) for view in ("alloc", "fault")}
    result = score(reports, oracle)
    if status not in (0, 3):
        result["laws_broken"].append(f"record exits with {status}")
        result["right"] = is_right(result)
    return result


def judge_all(args, chosen, folder):
    results = []
    for scenario in chosen:
        result = {"name": scenario["name"], "what": scenario["what"]}
        reason, began = lacking(scenario, folder), time.monotonic()
        try:
            result |= {"graded": False, "reason": reason} if reason else judge(args, scenario, folder)
        except run.Trouble as trouble:
            result |= {"graded": False, "reason": str(trouble), "trouble": True}
        result["seconds"] = round(time.monotonic() - began, 2)
        results.append(result)
        explain(result)
    return results


def explain(result):
    """What is wrong, as it is found."""
    if not result["graded"]:
        print(f"truth: {result['name']}: not scored: {result['reason']}", file=sys.stderr)
        return
    for fault in result["faults"]:
        print(f"truth: {result['name']}: {fault}", file=sys.stderr)
    for law in result["laws_broken"]:
        print(f"truth: {result['name']}: {law}", file=sys.stderr)


def markdown(results):
    lines = ["| scenario | precision | recall | wrong-exact | exact | allocation only: P, R "
             "| smaps: P, R |", "|---|---|---|---|---|---|---|"]
    for r in results:
        if not r["graded"]:
            lines.append(f"| {r['name']} | not scored | {r['reason']} | | | | |")
            continue
        base = [f"{b['precision']:.3f}, {b['recall']:.3f}" for b in
                (r["baselines"]["allocation"], r["baselines"]["smaps"])]
        lines.append(f"| {r['name']} | {r['precision']:.3f} | {r['recall']:.3f} "
                     f"| {r['wrong_exact_bytes']} | {r['exact_share']:.3f} | {base[0]} "
                     f"| {base[1]} |")
    graded = [r for r in results if r["graded"]]
    lines.append("")
    lines.append(f"{sum(r['right'] for r in graded)} of {len(graded)} graded scenarios right, "
                 f"wrong-exact {sum(r['wrong_exact_bytes'] for r in graded)} bytes, "
                 f"{len(results) - len(graded)} not scored")
    return "\n".join(lines)


class Swap:
    """64 MiB of swap while it runs, only where asked for: it is a change of the machine."""

    def __init__(self, folder):
        self.path = f"{folder}/swap"
        self.on = False

    def __enter__(self):
        if swap_is_on() or os.environ.get("MEMPROV_TEST_SWAP") != "1":
            return
        with open(self.path, "wb") as f:
            f.write(bytes(64 << 20))
        os.chmod(self.path, 0o600)
        for command in (["mkswap", "-q", self.path], ["swapon", self.path]):
            if subprocess.run(command, capture_output=True, check=False).returncode:
                print(f"truth: {command[0]} does not work here: no swap", file=sys.stderr)
                return
        self.on = True

    def __exit__(self, *_):
        if self.on:
            subprocess.run(["swapoff", self.path], check=False)


def parse(argv):
    parser = argparse.ArgumentParser(prog="scripts/truth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="exact scenarios only, under 45 s")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scenario", metavar="NAME", action="append")
    parser.add_argument("--seed", metavar="N", type=int, default=7)
    parser.add_argument("--build", metavar="DIR", default=f"{HERE}/../../build")
    args = parser.parse_args(argv)
    args.build = os.path.abspath(args.build)
    args.memprov = f"{args.build}/memprov"
    return args


def main():
    args = parse(sys.argv[1:])
    table = scenarios_of(args.build)
    names = [s["name"] for s in table]
    for name in args.scenario or ():
        if name not in names:
            sys.exit(f"truth: no scenario {name}: there are {', '.join(names)}")
    chosen = [s for s in table if (s["name"] in args.scenario if args.scenario
                                   else not args.quick or "slow" not in s["needs"])]
    folder = tempfile.mkdtemp(prefix="truth.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    try:
        with Swap(folder):
            results = judge_all(args, chosen, folder)
    finally:
        shutil.rmtree(folder)
    if args.json:
        print(json.dumps({"schema": SCHEMA, "seed": args.seed, "scenarios": results}, indent=1))
    else:
        print(markdown(results))
    return 1 if any(r.get("trouble") or not r.get("right", True) for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
