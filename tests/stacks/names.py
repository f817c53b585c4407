# SPDX-License-Identifier: GPL-2.0-only
"""names.py NAMES FILE COUNT [SEED]: names with inlined functions and lines of COUNT random addresses of
FILE's code, against llvm-symbolizer's."""
import json
import random
import re
import struct
import subprocess
import sys

names, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
data = open(path, "rb").read()


def text_section():
    """File offset, address and length of .text."""
    shoff, = struct.unpack_from("<Q", data, 40)
    size, number, strings = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQ", data, shoff + size * i) for i in range(number)]
    for name, _, _, addr, offset, length in sections:
        at = sections[strings][4] + name
        if data[at : data.index(b"\0", at)] == b".text":
            return offset, addr, length
    sys.exit("names: no .text")


RUST = {"LT": "<", "GT": ">", "u20": " ", "BP": "*", "RF": "&", "C": ",", "LP": "(", "RP": ")", "u7b": "{", "u7d": "}",
        "u5b": "[", "u5d": "]", "u27": "'", "u3b": ";", "u2b": "+"}


def plain(name):
    """Both demangle; clones, hashes and blanks they write in different ways."""
    name = re.sub(r"( \[clone .*?\])+$|( \(\.[^()]*\))+$", "", name)
    name = re.sub(r"(\.(isra|part|cold|constprop|lto_priv|llvm))?(\.\d+)*$|@.*$", "", name)
    name = re.sub(r"::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"\$(\w+)\$", lambda m: RUST.get(m[1], m[0]), name).replace("..", "::")
    return re.sub(r"\s+|(?<=::)_(?=<)|^_(?=<)", "", name)


offset, addr, length = text_section()
at = sorted(rng.randrange(length) for _ in range(count))
mine = subprocess.run([names, path], input="".join(f"{offset + a:x}\n" for a in at), capture_output=True, text=True, check=True)
theirs = subprocess.run(
    ["llvm-symbolizer", "--output-style=JSON", "--inlines", "--obj=" + path],
    input="".join(f"0x{addr + a:x}\n" for a in at), capture_output=True, text=True, check=True)
wrong = {"name": 0, "depth": 0, "line": 0, "file": 0}
shown = frames = 0
for a, m, t in zip(at, mine.stdout.splitlines(), theirs.stdout.splitlines()):
    m = m.split("\t")
    m = list(zip(m[::3], m[1::3], map(int, m[2::3])))
    t = [(f["FunctionName"] or "??", f["FileName"] or "??", f["Line"]) for f in json.loads(t)["Symbol"]]
    frames += len(t)
    bad = None
    if len(m) != len(t):
        bad = "depth"
    elif any(plain(x[0]) != plain(y[0]) for x, y in zip(m, t)):
        bad = "name"
    elif any(x[2] != y[2] for x, y in zip(m, t)):
        bad = "line"
    elif any(x[2] and x[1].split("/")[-1] != y[1].split("/")[-1] for x, y in zip(m, t)):
        bad = "file"
    if bad:
        wrong[bad] += 1
        if shown < 12:
            shown += 1
            print(bad, f"{addr + a:#x}", "\n  memprov", m, "\n  llvm   ", t)
print(f"{path.split('/')[-1]}: {count} addresses, {frames} frames; different: {wrong}")
sys.exit(sum(wrong.values()) != 0)
