# SPDX-License-Identifier: GPL-2.0-only
"""A program of Python that knows which of its functions maps what, on which line, called by whom.

Prints "ready PID", waits for a line, acts, prints what it did as JSON lines and "done", and waits
for another line. Each function maps a size of its own and writes to all of it, from C code that it
calls; between it and the start of the program lie other functions, C code that calls back into
Python, generators, threads and recursion.
"""
import asyncio
import gc
import json
import mmap
import os
import sys
import threading

PAGE = 4096
kept = []
said = []


def stack():
    """From the caller's caller on: names as Python says them, and the lines they are at."""
    frame, out = sys._getframe(2), []
    while frame:
        code = frame.f_code
        out.append([getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        frame = frame.f_back
    return out


def hold(pages):
    said.append({"pages": pages, "stack": stack()})
    m = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    m.write(b"x" * (pages * PAGE))
    kept.append(m)


class Shard:
    def grow(self, pages):
        hold(pages)


def down(n, pages):
    if n:
        down(n - 1, pages)
    else:
        Shard().grow(pages)


def by_key(pages):
    def key(value):
        if value == 2:
            hold(pages)
        return value
    sorted([3, 2, 1], key=key)


def steps(pages):
    yield 1
    hold(pages)
    yield 2


class Lazy:
    def __getattr__(self, name):
        hold(int(name[1:]))
        return None


async def serve(pages):
    await asyncio.sleep(0)
    hold(pages)


def in_thread(pages):
    hold(pages)


def made(pages):
    space = {"hold": hold}
    exec(compile("def ma\u00dfgeschneidert(n):\n  if n:\n    hold(n)\n", "<made>", "exec"), space)
    space["ma\u00dfgeschneidert"](pages)


def on_many(
    pages,
):
    return [
        hold(n)
        for n in (pages,)
    ]


def main():
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    down(12, 101)
    by_key(103)
    list(steps(107))
    getattr(Lazy(), "p109")
    asyncio.run(serve(113))
    t = threading.Thread(target=in_thread, args=(127,))
    t.start()
    t.join()
    made(131)
    on_many(137)
    for line in said:
        print(json.dumps(line))
    print("done", flush=True)
    sys.stdin.readline()


gc.disable()
main()
