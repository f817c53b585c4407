# SPDX-License-Identifier: GPL-2.0-only
"""Random programs: lines for the scenario random, and cutting them down to what matters."""
import random

# name, weight, what A and B are
OPS = (("map", 10, "pages", "flags"), ("write", 16, "page", "pages"), ("unmap", 6, "page", "pages"),
       ("fixed", 5, "page", "pages"), ("dontneed", 4, "page", "pages"),
       ("lazyfree", 1, "page", "pages"), ("close", 3, "page", "pages"), ("open", 2, "page", "pages"),
       ("remap", 4, "pages", "flags"), ("over", 2, "pages", "slot"), ("brk", 4, "some", "some"),
       ("malloc", 4, "pages", "flags"), ("free", 2, "flags", "flags"), ("fork", 1, "ops", "flags"))
SLOTS, OWNERS, LENGTH = 6, 6, 40


def operand(rng, what):
    return {"pages": lambda: rng.randint(1, 250), "page": lambda: rng.randint(0, 120),
            "flags": lambda: rng.choice((0, 0, 0, 1, 2)), "slot": lambda: rng.randrange(SLOTS),
            "some": lambda: rng.choice((0, rng.randint(1, 60))),
            "ops": lambda: rng.randint(1, 8)}[what]()


def generate(seed):
    rng = random.Random(seed)
    weights = [op[1] for op in OPS]
    lines = []
    for _ in range(rng.randint(5, LENGTH)):
        name, _, a, b = rng.choices(OPS, weights)[0]
        lines.append(f"{name} {rng.randrange(OWNERS)} {rng.randrange(SLOTS)} "
                     f"{operand(rng, a)} {operand(rng, b)}")
    return lines


def shrink(lines, fails):
    """A program that still fails and of which no operation can be left out."""
    size = max(1, len(lines) // 2)
    while size:
        at = 0
        while at < len(lines):
            shorter = lines[:at] + lines[at + size:]
            if shorter and fails(shorter):
                lines = shorter
            else:
                at += size
        size //= 2
    return lines
