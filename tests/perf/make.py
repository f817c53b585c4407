#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write a perf.data file of made-up memory samples after perf.data-file-format.txt, and what is in
it: make.py FILE TRUTH [--pid N --range START END]. Shares nothing with lib/perf."""
import argparse
import random
import struct

IP, TID, TIME, ADDR, ID, CPU, PERIOD, CALLCHAIN, RAW, IDENT = (
    1, 2, 4, 8, 64, 128, 256, 32, 1024, 1 << 16)
WEIGHT, DATA_SRC, PHYS, WSTRUCT = 1 << 14, 1 << 15, 1 << 19, 1 << 24
SHAPES = (
    IP | TID | TIME | ADDR | WEIGHT | DATA_SRC | PHYS | IDENT,
    IP | TID | TIME | ADDR | CPU | PERIOD | WSTRUCT | DATA_SRC | PHYS | IDENT,
    IP | TID | TIME | ADDR | ID | CALLCHAIN | RAW | WEIGHT | DATA_SRC | PHYS | IDENT,
)
# enum perf_mem_data_src of include/uapi: op load, level hit; L1, L3, local RAM, remote RAM.
LEVELS = (0x8, 0x40, 0x80, 0x100)


def data_src(rng):
    level = rng.choice(LEVELS)
    return 2 | (2 | level) << 5 | 2 << 19


def attr(kind):
    raw = bytearray(128)
    struct.pack_into("<IIQQQQ", raw, 0, 4, 128, 0, 1, kind, 4)
    struct.pack_into("<Q", raw, 40, 1 << 18)  # sample_id_all
    return bytes(raw)


def record(kind, body, misc=2):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(kind, event, s):
    out = b""
    if kind & IDENT:
        out += struct.pack("<Q", event)
    out += struct.pack("<QIIQQ", s["ip"], s["pid"], s["tid"], s["time"], s["addr"])
    if kind & ID:
        out += struct.pack("<Q", event)
    if kind & CPU:
        out += struct.pack("<II", 1, 0)
    if kind & PERIOD:
        out += struct.pack("<Q", 1)
    if kind & CALLCHAIN:
        out += struct.pack("<QQQ", 2, (1 << 64) - 512, s["ip"])
    if kind & RAW:
        out += struct.pack("<I", 12) + bytes(12)
    if kind & WSTRUCT:
        out += struct.pack("<IHH", s["weight"], 7, 9)
    else:
        out += struct.pack("<Q", s["weight"])
    out += struct.pack("<QQ", s["data_src"], s["phys"])
    return record(9, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("truth")
    parser.add_argument("--pid", type=int, default=4711)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--range", nargs=3, action="append", metavar=("START", "END", "SHARE"),
                        help="addresses in hex, and how many of a hundred samples they get")
    parser.add_argument("--lost", type=int, default=0)
    parser.add_argument("--drift", action="store_true", help="the ranges change places half-way")
    args = parser.parse_args()
    rng = random.Random(7)
    ranges = [(int(a, 16), int(b, 16), int(s)) for a, b, s in args.range or
              [("7f0000000000", "7f0000100000", "100")]]
    data = b""
    with open(args.truth, "w", encoding="utf-8") as truth:
        for i in range(args.samples):
            shares = [s for _, _, s in ranges]
            if args.drift and i >= args.samples // 2:
                shares.reverse()
            start, end, _ = rng.choices(ranges, shares)[0]
            s = {"ip": 0x400000 + rng.randrange(1 << 16), "pid": args.pid, "tid": args.pid,
                 "time": 1000 + i, "addr": rng.randrange(start, end),
                 "weight": rng.randrange(1, 900), "data_src": data_src(rng),
                 "phys": rng.randrange(1 << 34)}
            event = rng.randrange(len(SHAPES))
            data += sample(SHAPES[event], 100 + event, s)
            print(f"{s['pid']} {s['tid']} {s['ip']:x} {s['addr']:x} {s['data_src']:x}"
                  f" {s['weight']:x} {s['phys']:x}", file=truth)
    if args.lost:
        # Its sample_id: identifier and, by the first event, tid and time.
        data += record(2, struct.pack("<QQIIQQ", 100, args.lost, args.pid, args.pid, 0, 100))
    ids = b"".join(struct.pack("<Q", 100 + i) for i in range(len(SHAPES)))
    at = 104 + len(ids)
    attrs = b"".join(attr(k) + struct.pack("<QQ", 104 + 8 * i, 8) for i, k in enumerate(SHAPES))
    with open(args.file, "wb") as f:
        f.write(b"PERFILE2" + struct.pack("<QQ", 104, 144))
        f.write(struct.pack("<QQQQQQ", at, len(attrs), at + len(attrs), len(data), 0, 0))
        f.write(bytes(32) + ids + attrs + data)


if __name__ == "__main__":
    main()
