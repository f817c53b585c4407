#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""One table of what ran on which kernel: test x kernel x verdict.

usage: table.py DIR [--format markdown|json]

DIR has a folder for each kernel with the guest's /out: release, features.json, and files verdicts*
with lines of TEST, VERDICT, SECONDS and REASON between tabs.
"""
import argparse
import json
import pathlib


def load(folder):
    kernel = {"key": folder.name, "release": "", "features": [], "tests": {}}
    if (folder / "release").exists():
        kernel["release"] = (folder / "release").read_text(encoding="utf-8").strip()
    try:
        doc = json.loads((folder / "features.json").read_text(encoding="utf-8"))
        kernel["features"] = doc["capabilities"]
    except (OSError, ValueError):
        pass
    for path in sorted(folder.glob("verdicts*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            test, verdict, seconds, reason = line.split("\t")
            kernel["tests"][test] = {"verdict": verdict, "seconds": int(seconds), "reason": reason}
    return kernel


def version(kernel):
    return [int(part) for part in kernel["key"].split(".")]


def providers(kernels):
    """(capability, provider) -> the word for each kernel."""
    rows = {}
    for kernel in kernels:
        for capability in kernel["features"]:
            for provider in capability["providers"]:
                words = rows.setdefault((capability["name"], provider["name"]), {})
                words[kernel["key"]] = provider["status"]
    return rows


def markdown(kernels):
    keys = [kernel["key"] for kernel in kernels]
    lines = ["| | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|",
             "| release | " + " | ".join(kernel["release"] for kernel in kernels) + " |"]
    for (capability, provider), words in providers(kernels).items():
        cells = (words.get(key, "-") for key in keys)
        lines.append(f"| {capability}: {provider} | " + " | ".join(cells) + " |")
    notes = []
    for test in sorted({test for kernel in kernels for test in kernel["tests"]}):
        cells = []
        for kernel in kernels:
            got = kernel["tests"].get(test, {"verdict": "-", "reason": ""})
            cells.append("**fail**" if got["verdict"] == "fail" else got["verdict"])
            if got["verdict"] in ("fail", "skip"):
                notes.append(f"- {test} on {kernel['key']}: {got['verdict']}: {got['reason'] or 'no reason given'}")
        lines.append(f"| {test} | " + " | ".join(cells) + " |")
    return "\n".join(lines + [""] + notes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--format", choices=("markdown", "json"), default="markdown")
    args = parser.parse_args()
    kernels = sorted(map(load, {path.parent for path in args.dir.glob("*/release")}), key=version)
    if not kernels:
        raise SystemExit(f"{args.dir}: no kernel has run yet")
    if args.format == "json":
        print(json.dumps({"schema": "memprov-kernels/1", "kernels": kernels}, indent=1))
    else:
        print(markdown(kernels))


if __name__ == "__main__":
    main()
