#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge the report on a cgroup by what the workload made it pay for (its own count) and by the
kernel's figures, read here once more while everything stands still."""
import argparse
import ctypes
import json
import mmap
import os
import time

PAGE = 4096
# Blocks of the file system's own that two new files bring into the cache: ext4 reads 32 blocks of
# inodes at a time, and some of bitmaps and extents.
METADATA = (2 * 32 + 16) * PAGE
# A thread's kernel stack and the page directory.
KERNEL = 32 * PAGE
MOVED = 75
# While pages move, memory.stat may be this much behind (128 pages a processor).
LAG = 128 * PAGE * os.sysconf("SC_NPROCESSORS_ONLN")
lag = 0
wrong = 0


def expect(what, truth, got, good=None):
    global wrong
    good = truth == got if good is None else good
    wrong += not good
    print(f"{'ok   ' if good else 'WRONG'} {what:<44} truth {truth!s:>12} memprov {got!s:>12}")


def charged(rows, part="value"):
    values = [row["costs"]["charged"] for row in rows]
    return sum(v.get(part, 0) for v in values if v is not None)


def named(report, *words):
    """Sum of the memcg rows of one of these names."""
    return charged([row for row in report["rows"] if row["origin"]["kind"] == "memcg"
                    and row["origin"]["name"] in words])


def of_function(report, name):
    return [row for row in report["rows"] if any(
        (f.get("function") or "").split(".")[0] == name for f in row["origin"]["stack"])]


def of_object(report, word, pid):
    return [row for row in report["rows"] if row["origin"]["pid"] == pid
            and word in (row["origin"]["name"] or "")]


def kernel_file(group, name):
    try:
        with open(os.path.join(group, name), encoding="ascii") as f:
            return f.read()
    except OSError:
        return None


def cached(pid, fd):
    """Bytes of a file of that process in the page cache, without touching any."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/proc/{pid}/fd/{fd}", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        pages = len(m) // PAGE
        vec = (ctypes.c_ubyte * pages)()
        whole = (ctypes.c_char * len(m)).from_buffer(m)
        if libc.mincore(whole, ctypes.c_size_t(len(m)), vec):
            raise OSError(ctypes.get_errno(), "mincore")
        del whole
        return PAGE * sum(v & 1 for v in vec)


def take(group, pid, parts):
    """The kernel's figures now. A machine may reclaim cold cache on its own at any time."""
    stat = {k: int(v) for k, v in
            (line.split() for line in kernel_file(group, "memory.stat").splitlines())}
    v1 = "total_cache" in stat
    pages = (stat["total_cache"] + stat["total_rss"] if v1 else stat["file"] + stat["anon"])
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        tables = [int(line.split()[1]) * 1024 for line in f if line.startswith("VmPTE:")][0]
    return {
        "stat": stat,
        "pages": pages,
        "current": int(kernel_file(group, "memory.usage_in_bytes" if v1 else "memory.current")),
        "kmem": int(kernel_file(group, "memory.kmem.usage_in_bytes") or 0),
        "file": cached(pid, parts["file fd"]),
        "tables": tables,
    }


def take_settled(group, pid, parts):
    """memory.stat is brought up to date every two seconds; wait for two equal readings."""
    last = None
    for _ in range(10):
        now = take(group, pid, parts)
        if now == last:
            break
        last = now
        time.sleep(2.5)
    return last


def between(what, before, after, got, more=0):
    """got is what the kernel said before or after, or between; up to more above it."""
    lo, hi = min(before, after) - lag, max(before, after) + more + lag
    expect(what, lo if lo == hi else f"{lo}-{hi}", got, lo <= got <= hi)


def judge_parts(report, parts, pid, v1, before, after, cache):
    expect("file, mapped", parts["file mapped"], charged(of_object(report, "#", pid)))
    expect("memfd, mapped", parts["memfd mapped"], charged(of_object(report, "memfd:seen", pid)))
    between("page cache nobody maps", before["file"] + cache, after["file"] + cache,
            named(report, "cache (not mapped)" if v1 else "file (not mapped)"), METADATA)
    expect("the file was there", True, 0 < after["file"] <= parts["file"])
    expect("memfd nobody maps", parts["shmem"], named(report, "shmem (not mapped)"))
    between("page tables", before["tables"], after["tables"],
            named(report, "kmem (page tables)", "pagetables"), KERNEL)
    expect("page tables are made", True, after["tables"] >= parts["tables"])
    if v1:
        between("pipes", parts["pipes"], parts["pipes"],
                named(report, "kmem (pages: pipes, stacks, vmalloc)"), KERNEL)
    got = named(report, "kmem (slab, percpu)", "slab_reclaimable", "slab_unreclaimable")
    expect("slab, at least", parts["slab"], got, got >= parts["slab"])
    anon = [row for row in report["rows"] if row["origin"]["kind"] in ("preexisting", "mmap", "fault")
            and row["origin"]["pid"] == pid]
    truth = parts["own_anon"] + parts["own_tables"]
    between("anonymous", truth, truth, charged(anon), 64 * PAGE)


def judge_still(report, v1, before, after, outside):
    kernel = [row for row in report["rows"] if row["origin"]["kind"] == "memcg"
              and not row["origin"]["name"].startswith(("cache", "file", "shmem", "rss", "anon",
                                                        "swapcached"))]
    pages = charged(report["rows"]) - charged(kernel) - named(report, "swapcached (not mapped)")
    between("cache and anonymous are memory.stat's", before["pages"], after["pages"], pages)
    if v1:
        between("kernel rows are memory.kmem's", before["kmem"], after["kmem"], charged(kernel))
    check = report["check"]["charged"]
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    cgroup = report["recording"]["cgroups"][0]
    advance = 64 * PAGE * cpus * cgroup["groups"]
    expect("scope", "cgroup", check["scope"])
    expect("status", "ok", check["status"])
    between("the kernel's counter", before["current"], after["current"], check["kernel"])
    expect("rows", check["attributed"] + check["unattributed"], charged(report["rows"]))
    expect("unattributed", 0, check["unattributed"])
    expect("residual", check["kernel"] - charged(report["rows"]), check["residual"])
    moved = abs(after["pages"] - before["pages"])
    expect("residual is what is charged in advance", f"<={advance}", check["residual"],
           -moved <= check["residual"] <= advance)
    expect("mapped outside", outside, named(report, "rss (mapped outside)", "anon (mapped outside)"))
    expect("limit", 256 << 20, cgroup["end"]["limit"])
    expect("high", "unlimited", cgroup["end"]["high"])
    expect("keys of memory.stat", True, set(after["stat"]) == set(cgroup["end"]["stat"]))
    for key in ("total_rss", "total_shmem", "anon", "shmem"):
        if key in after["stat"]:
            between(f"memory.stat {key}", before["stat"][key], after["stat"][key],
                    cgroup["end"]["stat"][key])
    for row in report["rows"]:
        if row["origin"]["kind"] == "memcg":
            for column in ("resident", "pss", "unique", "grown"):
                if row["costs"][column] is not None:
                    expect(f"{row['origin']['name']} {column}", None, row["costs"][column])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report")
    parser.add_argument("--group")
    parser.add_argument("--oracle")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--take", action="store_true", help="only print the kernel's figures now")
    parser.add_argument("--moving", action="store_true", help="judge even so")
    parser.add_argument("--still", help="nothing of the group ran since these figures")
    parser.add_argument("--outside", type=int, default=0, help="charged here, mapped elsewhere")
    parser.add_argument("--cache", type=int, default=0,
                        help="page cache that nobody mapped before the workload went")
    parser.add_argument("--adopted", type=int, help="came in while it was recorded")
    parser.add_argument("--path")
    parser.add_argument("--unjudged")
    args = parser.parse_args()
    if args.take or args.still:
        with open(args.oracle, encoding="ascii") as f:
            parts = {p["part"]: p["bytes"] for p in map(json.loads, f)}
    if args.take:
        print(json.dumps(take_settled(args.group, args.pid, parts)))
        return 0
    with open(args.report, encoding="utf-8") as f:
        report = json.load(f)
    cgroup = report["recording"]["cgroups"][0]
    v1 = cgroup["version"] == 1
    if args.still:
        with open(args.still, encoding="ascii") as f:
            before = json.load(f)
        after = take(args.group, args.pid, parts)
        if before != after and not args.moving:
            print("note: the machine reclaimed in between")
            return MOVED
        if before != after:
            global lag
            lag = LAG
        judge_parts(report, parts, args.pid, v1, before, after, args.cache)
        judge_still(report, v1, before, after, args.outside)
    if args.adopted:
        expect("it is a target", True,
               args.adopted in [t["pid"] for t in report["recording"]["targets"]])
        rows = [r for r in report["rows"] if r["origin"]["pid"] == args.adopted]
        expect("its memory, charged to where it came from", 0, charged(rows))
        resident = sum(r["costs"]["resident"]["value"] for r in rows)
        with open(args.oracle, encoding="ascii") as f:
            least = json.loads(f.readline())["resident"]
        expect("it is resident, at least", least, resident, resident >= least)
        expect("groups", 2, cgroup["groups"])
    if args.path:
        expect("path", args.path, cgroup["path"].lstrip("/"))
    if args.unjudged:
        check = report["check"]["charged"]
        expect("status", "unjudged", check["status"])
        expect("kernel", None, check["kernel"])
        expect("residual", None, check["residual"])
        expect("reason", args.unjudged, check["reason"], args.unjudged in check["reason"])
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
