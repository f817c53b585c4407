#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges memprov by programs that know what they did. Prints a Markdown table, with --json
memprov-truth/1; see memprov-truth(5). Exits with 1 when a scenario is judged wrong."""
import argparse
import glob
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

import kernels
import programs
import run
from score import Oracle, conclude, score

SCHEMA = "memprov-truth/1"
HERE = os.path.dirname(os.path.abspath(__file__))
BOOT_SECONDS = 400 # and what copies the tree there
VM_SECONDS = 1800  # for scenarios, unless --budget says less
UNAVAILABLE = 77  # of scripts/vm: there is no such kernel to be had here
LOSSY_TRIES = 3
MANY = 6  # faults of one scenario that are shown
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


def losses(args):
    """What the recorder loses on purpose; see memprov-truth(5)."""
    if not args.loss:
        return None
    lose = f"topology={args.loss}%,detail={args.loss}%,burst={args.burst},seed={args.seed}"
    return {"MEMPROV_LOSE": lose}


def score_trace(args, lines, trace):
    oracle = Oracle(lines)
    if oracle.not_scored:
        return {"graded": False, "reason": oracle.not_scored}
    reports = {view: run.report(args.memprov, trace, view) for view in ("alloc", "fault")}
    return score(reports, oracle)


def keep_evidence(args, name, lines, trace):
    """What --replay needs of this run."""
    os.makedirs(args.keep, exist_ok=True)
    shutil.copy(trace, f"{args.keep}/{name}.trace")
    lines = [{"verdict": args.verdict}, *lines]
    with gzip.GzipFile(f"{args.keep}/{name}.oracle.gz", "wb", mtime=0) as f:
        f.write("".join(json.dumps(line) + "\n" for line in lines).encode())


def replay(args):
    """The kept traces, scored again: no kernel is needed, and what changes is the profiler's."""
    results = []
    for path in sorted(glob.glob(f"{HERE}/corpus/*.trace")):
        name = os.path.basename(path)[:-6]
        with gzip.open(f"{path[:-6]}.oracle.gz", "rt", encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        result = {"name": name, "what": "a kept trace"}
        try:
            result |= score_trace(args, lines[1:], path)
            result["right"] = result[lines[0]["verdict"]]
        except run.Trouble as trouble:
            result |= {"graded": False, "reason": str(trouble), "trouble": True}
        results.append(result)
        explain(lines[0]["verdict"], result)
    return results


def judge(args, scenario, folder, program=None):
    """One scenario, recorded and scored."""
    trace = f"{folder}/{scenario['name']}.trace"
    argv = [f"{args.build}/truth/scenarios", program or scenario["name"], str(args.seed), folder]
    kill = random.Random(args.seed + zlib.crc32(scenario["name"].encode())).uniform(0.01, args.kill)
    lines, status = run.record(args.memprov, argv, trace, kill if args.kill else None, losses(args))
    if args.keep:
        keep_evidence(args, scenario["name"], lines, trace)
    result = score_trace(args, lines, trace)
    if not result["graded"]:
        return result
    if status not in (0, 3) and not args.kill:
        result["laws_broken"].append(f"record exits with {status}")
        conclude(result)
    return result


def judge_whole(args, scenario, folder):
    """A recording that lost events without being told to, as it may where programs are interrupted,
    is judged for honesty and repeated: nothing in it need be exact."""
    for _ in range(LOSSY_TRIES):
        result = judge(args, scenario, folder)
        if (not result["graded"] or result["right"] or not result["honest"] or not result["lost"]
                or args.loss or args.kill):
            break
    return result


def judge_program(args, lines, name, folder):
    """One program of operations, as a scenario of that name."""
    with open(f"{folder}/ops", "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))
    return judge(args, {"name": name}, folder, "random")


def is_wrong(args, lines, folder):
    result = judge_program(args, lines, "shrinking", folder)
    return result["graded"] and not result[args.verdict]


def keep(args, lines, name):
    """The minimal program of a failure: in tests/truth/found it is run for good."""
    os.makedirs(f"{args.build}/truth/found", exist_ok=True)
    path = f"{args.build}/truth/found/{name}.ops"
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))
    print(f"truth: {path}: a minimal program that is judged wrong; in tests/truth/found it stays",
          file=sys.stderr)


def found_programs():
    found = {}
    for path in sorted(glob.glob(f"{HERE}/found/*.ops")):
        with open(path, encoding="utf-8") as f:
            found[os.path.basename(path)[:-4]] = f.read().splitlines()
    return found


def judge_programs(args, folder):
    """Those found before, and as many new ones as asked for."""
    all_programs = found_programs()
    all_programs |= {f"random-{seed}": programs.generate(seed)
                     for seed in range(args.seed, args.seed + args.random)}
    results = []
    for name, lines in all_programs.items():
        result = {"name": name, "what": "a program of random operations", "program": lines}
        try:
            result |= judge_program(args, lines, name, folder)
            if result["graded"] and not result[args.verdict] and name.startswith("random-"):
                keep(args, programs.shrink(lines, lambda some: is_wrong(args, some, folder)), name)
        except run.Trouble as trouble:
            result |= {"graded": False, "reason": str(trouble), "trouble": True}
        results.append(result)
        explain(args.verdict, result)
    return results


def judge_all(args, chosen, folder):
    results, start = [], time.monotonic()
    for scenario in chosen:
        result = {"name": scenario["name"], "what": scenario["what"]}
        reason, began = lacking(scenario, folder), time.monotonic()
        if args.budget and began - start > args.budget:
            reason = f"no time left of {args.budget:.0f} s"
        try:
            result |= {"graded": False, "reason": reason} if reason else judge_whole(args, scenario, folder)
        except run.Trouble as trouble:
            result |= {"graded": False, "reason": str(trouble), "trouble": True}
        result["seconds"] = round(time.monotonic() - began, 2)
        results.append(result)
        explain(args.verdict, result)
    return results


def explain(verdict, result):
    """What is wrong, as it is found; after a loss only what is dishonest."""
    if not result["graded"]:
        print(f"truth: {result['name']}: not scored: {result['reason']}", file=sys.stderr)
        return
    faults = [fault for fault in result["faults"]
              if verdict == "right" or fault["wrong_exact"] or fault["outside"]]
    for fault in faults[:MANY]:
        print(f"truth: {result['name']}: {fault}", file=sys.stderr)
    if len(faults) > MANY:
        print(f"truth: {result['name']}: and {len(faults) - MANY} more", file=sys.stderr)
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
                 f"{sum(r['honest'] for r in graded)} honest, wrong-exact {sum(r['wrong_exact_bytes'] for r in graded)} bytes, "
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


def seed_of(text):
    """A number; of the word commit the number of the commit, so that each has runs of its own."""
    if text != "commit":
        return int(text)
    head = subprocess.run(["git", "-C", HERE, "rev-parse", "HEAD"], capture_output=True, check=False)
    return int(head.stdout[:7] or b"0", 16)


def parse(argv):
    parser = argparse.ArgumentParser(prog="scripts/truth", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="exact scenarios only, under 45 s")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--scenario", metavar="NAME", action="append")
    parser.add_argument("--seed", metavar="N", type=seed_of, default=7, help="commit: of HEAD")
    parser.add_argument("--loss", metavar="P", type=float, default=0,
                        help="percent of the events of both rings that are lost on purpose")
    parser.add_argument("--burst", metavar="N", type=int, default=1, help="lost in a row")
    parser.add_argument("--kill", metavar="SECONDS", type=float, default=0,
                        help="SIGKILL to the recorder at a random time up to this")
    parser.add_argument("--random", metavar="N", type=int, default=0,
                        help="instead of scenarios, N random programs, and all that once failed")
    parser.add_argument("--replay", action="store_true",
                        help="score the kept traces again: needs no privilege")
    parser.add_argument("--keep", metavar="DIR", help="keep traces and oracles for --replay")
    parser.add_argument("--kernel", metavar="V", help="on these kernels of scripts/vm, V,V or all, and one table of them")
    parser.add_argument("--budget", metavar="SECONDS", type=float, default=0,
                        help="scenarios that would begin later are not scored")
    parser.add_argument("--cells", action="store_true", help="with --json: every cell that was judged")
    parser.add_argument("--build", metavar="DIR", default=f"{HERE}/../../build")
    args = parser.parse_args(argv)
    args.build = os.path.abspath(args.build)
    args.memprov = f"{args.build}/memprov"
    # What was lost cannot be right, but nothing may be wrong.
    args.verdict = "honest" if args.loss or args.kill else "right"
    return args


# Balancing takes access from huge pages for a while, and smaps of Linux 6.1 then leaves them out of
# Rss: no figure to judge by.
IN_GUEST = """uname -r >/out/release
echo 0 >/proc/sys/kernel/numa_balancing
exec "$@" >/out/truth.json"""


def on_kernel(args, kernel):
    """The same in a virtual machine, the tree at the same relative paths there. Returns its status
    and what it scored, or None."""
    tree = os.path.realpath(f"{HERE}/../..")
    build = os.path.relpath(args.build, tree)
    out = f"{args.build}/truth/kernels/{kernel}"
    rest = [f"--seed={args.seed}", f"--loss={args.loss}", f"--burst={args.burst}",
            f"--kill={args.kill}", f"--random={args.random}", f"--build={build}", "--json", "--cells",
            f"--budget={args.budget or VM_SECONDS}"]
    rest += [f"--{name}" for name in ("quick", "replay") if getattr(args, name)]
    rest += [f"--scenario={name}" for name in args.scenario or ()]
    shutil.rmtree(out, ignore_errors=True)
    done = subprocess.run([f"{tree}/scripts/vm", "--build", args.build, "--out", out, "--timeout",
                           str(int(args.budget or VM_SECONDS) + BOOT_SECONDS), kernel, "--", "bash", "-c",
                           IN_GUEST, "truth",
                           "scripts/truth", *rest], stdout=subprocess.PIPE, check=False)
    said = done.stdout.decode(errors="replace").strip()
    try:
        with open(f"{out}/truth.json", encoding="utf-8") as f, \
                open(f"{out}/release", encoding="utf-8") as release:
            return done.returncode, {"release": release.read().strip(), "scenarios": {
                result["name"]: result for result in json.load(f)["scenarios"]}}
    except (OSError, ValueError):
        why = (said.splitlines() or [f"scripts/vm exits with {done.returncode}"])[-1]
        return done.returncode, {"release": "", "scenarios": {}, "reason": why}


def on_kernels(args):
    """One after the other, and one table of all. A kernel that cannot be had is a line with why."""
    names = args.kernel.split(",")
    if names == ["all"]:
        listed = subprocess.run([f"{HERE}/../../scripts/vm", "--list"], capture_output=True, check=True)
        names = [line.split()[0] for line in listed.stdout.decode().splitlines()]
    runs, statuses = {}, []
    for kernel in names:
        print(f"truth: on {kernel}", file=sys.stderr)
        status, runs[kernel] = on_kernel(args, kernel)
        statuses.append(status)
    table = kernels.judge(runs)
    print(json.dumps(table, indent=1) if args.json else kernels.markdown(table))
    if set(statuses) == {UNAVAILABLE}:
        print("\n".join(run["reason"] for run in runs.values()))
        return UNAVAILABLE
    return 0 if set(statuses) <= {0, UNAVAILABLE} and kernels.is_good(table, args.verdict) else 1


def main():
    args = parse(sys.argv[1:])
    if args.kernel:
        return on_kernels(args)
    table = scenarios_of(args.build)
    names = [s["name"] for s in table]
    for name in args.scenario or ():
        if name not in names:
            sys.exit(f"truth: no scenario {name}: there are {', '.join(names)}")
    chosen = [s for s in table if "ops" not in s["needs"] and (
        s["name"] in args.scenario if args.scenario
        else not args.quick or "slow" not in s["needs"])]
    folder = tempfile.mkdtemp(prefix="truth.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    try:
        with Swap(folder):
            if args.replay:
                results = replay(args)
            elif args.random:
                results = judge_programs(args, folder)
            else:
                results = judge_all(args, chosen, folder)
    finally:
        shutil.rmtree(folder)
    if not args.cells:
        for result in results:
            result.pop("cells", None)
    if args.json:
        print(json.dumps({"schema": SCHEMA, "seed": args.seed, "scenarios": results}, indent=1))
    else:
        print(markdown(results))
    return 1 if any(r.get("trouble") or not r.get(args.verdict, True) for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
