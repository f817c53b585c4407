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


def demangle(names):
    """c++filt takes one name a line and knows Rust's schemes as well."""
    p = subprocess.run(["c++filt", "--no-verbose"], input="".join(n + "\n" for n in names), capture_output=True, text=True, check=True)
    return dict(zip(names, p.stdout.splitlines()))


def plain(name):
    """A clone by the name of its function, and without the hashes of Rust."""
    name = re.sub(r"( \[clone .*?\])+$|::h[0-9a-f]{16}$", "", name)
    name = re.sub(r"(?<=\w)\[[0-9a-f]{1,16}\]|(?<=[\w']): [iu](size|\d+)\b|: (bool|char)\b", "", name)
    return re.sub(r"(\.(isra|part|cold|constprop|lto_priv|llvm))?(\.\d+)*$|@.*$", "", name)


def aliases():
    """Names of one address: the linker folds functions that are alike, and either name is right."""
    p = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True)
    at = {}
    for line in p.stdout.splitlines():
        a, kind, name = line[:16], line[17:18], line[19:]
        if kind in "tTwWiVv":
            at.setdefault(a, set()).add(plain(name))
    same = {}
    for group in at.values():
        for name in group:
            same.setdefault(name, set()).update(group)
    return same


def same_name(x, y):
    return x == y or y in alias.get(x, ())


offset, addr, length = text_section()
at = sorted(rng.randrange(length) for _ in range(count))
mine = subprocess.run([names, path], input="".join(f"{offset + a:x}\n" for a in at), capture_output=True, text=True, check=True)
theirs = subprocess.run(
    ["llvm-symbolizer", "--output-style=JSON", "--inlines", "--no-demangle", "--obj=" + path],
    input="".join(f"0x{addr + a:x}\n" for a in at), capture_output=True, text=True, check=True)
theirs = [[(f["FunctionName"] or "??", f["FileName"] or "??", f["Line"]) for f in json.loads(t)["Symbol"]]
          for t in theirs.stdout.splitlines()]
long = demangle(sorted({f[0] for t in theirs for f in t}))
alias = aliases()
wrong = {"name": 0, "depth": 0, "line": 0, "file": 0}
shown = frames = 0
for a, m, t in zip(at, mine.stdout.splitlines(), theirs):
    m = m.split("\t")
    m = list(zip(m[::3], m[1::3], map(int, m[2::3])))
    t = [(long[f[0]], *f[1:]) for f in t]
    frames += len(t)
    bad = None
    if len(m) != len(t):
        bad = "depth"
    elif any(not same_name(plain(x[0]), plain(y[0])) for x, y in zip(m, t)):
        bad = "name"
    elif t[0][0] == "??":
        pass  # padding between functions is nobody's, whatever the line table says
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
