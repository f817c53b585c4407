#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Second decoder of the trace file, after memprov-trace(5): decode.py FILE prints one JSON object
a record. It shares no code with lib/trace, so that an error in one of the two is seen. A byte of
a text outside printable ASCII is printed as the code point of that number."""
import subprocess
import struct
import sys
import zlib

TAIL_NONE, TAIL_STRING, TAIL_STACK = 0, 1, 2


class Bad(Exception):
    pass


class Cursor:
    def __init__(self, data):
        self.data = data
        self.pos = 0

    def take(self, n):
        if n > len(self.data) - self.pos:
            raise Bad("content ends too early")
        self.pos += n
        return self.data[self.pos - n : self.pos]

    def uint(self, size):
        return int.from_bytes(self.take(size), "little")

    def name(self):
        n = self.uint(1)
        if not n:
            raise Bad("empty name")
        return self.take(n).decode("ascii")

    def varint(self):
        v = 0
        for i in range(10):
            b = self.uint(1)
            v |= (b & 0x7F) << (7 * i)
            if not b & 0x80:
                if v >> 64:
                    raise Bad("varint of more than 64 bits")
                return v
        raise Bad("varint of more than 10 bytes")

    def delta(self, previous, size):
        z = self.varint()
        return (previous + ((z >> 1) ^ -(z & 1))) & ((1 << 8 * size) - 1)

    def done(self):
        if self.pos != len(self.data):
            raise Bad("bytes left over")


class Type:
    def __init__(self, c):
        self.number, self.tail, n = c.uint(1), c.uint(1), c.uint(1)
        size = c.uint(2)
        self.name = c.name()
        self.fields = []
        self.key = None
        if not self.number or n > 64:
            raise Bad("schema: type")
        for _ in range(n):
            fsize, coding = c.uint(1), c.uint(1)
            name, _unit = c.name(), c.name()
            if fsize not in (1, 2, 4, 8) or coding > 3:
                raise Bad("schema: field")
            if name == "tid" and self.key is None:
                self.key = len(self.fields)
            self.fields.append((name, fsize, coding))
        if any(f[2] == 2 for f in self.fields) and (
            self.key is None or self.fields[self.key][2] == 2
        ):
            raise Bad("schema: no thread to follow")
        if size % 8 or size != sum(f[1] for f in self.fields):
            raise Bad("schema: size of the body")


def schema(content):
    c = Cursor(content)
    types = {}
    for _ in range(c.uint(2)):
        t = Type(c)
        if t.number in types:
            raise Bad("schema: type twice")
        types[t.number] = t
    c.done()
    return types


def dictionary(c, entries):
    k = c.varint()
    if k > len(entries):
        raise Bad("dictionary index")
    if k:
        return entries[k - 1]
    v = c.varint()
    if len(entries) < 65536:
        entries.append(v)
    return v


def column(c, count, size, coding, tids=None):
    """The values of one column, which must fill it."""
    values, previous, entries = [], {}, []
    for i in range(count):
        if coding in (0, 2):
            key = tids[i] % 256 if coding == 2 else 0
            v = previous[key] = c.delta(previous.get(key, 0), size)
        else:
            v = dictionary(c, entries) if coding == 1 else c.varint()
            if v >> 8 * size:
                raise Bad("value too large")
        values.append(v)
    c.done()
    return values


def text_json(data):
    out = []
    for b in data:
        plain = 0x20 <= b < 0x7F and b not in b'"\\'
        out.append(chr(b) if plain else "\\u%04x" % b)
    return '"%s"' % "".join(out)


def stack_tail(c, values):
    if values["n"] > 127:
        raise Bad("depth of a stack")
    frames, prev = [], 0
    for _ in range(values["n"]):
        prev = c.delta(prev, 8)
        frames.append('"0x%x"' % prev)
    raw = c.take((values["raw"] + 7) // 8 * 8)
    if 24 + 16 + 8 * len(frames) + len(raw) > 65528:
        raise Bad("record too long")
    return ', "frames": [%s], "raw_bytes": "%s"' % (", ".join(frames), raw.hex())


def tail(c, t, values):
    if t.tail == TAIL_NONE:
        return ""
    if t.tail == TAIL_STRING:
        if values["len"] > 4096:
            raise Bad("length of a string")
        return ', "text": ' + text_json(c.take(values["len"]))
    if t.tail == TAIL_STACK:
        return stack_tail(c, values)
    return ""


class Strings:
    def __init__(self):
        self.text = []

    def see(self, ident, text):
        if ident == 0 or ident > len(self.text) + 1:
            raise Bad("string id")
        if ident == len(self.text) + 1:
            self.text.append(text)
        elif self.text[ident - 1] != text:
            raise Bad("string id with another text")


def cut(c, lengths, n):
    return [Cursor(c.take(lengths.uint(4))) for _ in range(n)]


def table(t, count, columns):
    """Records of one type, in their order, without tails."""
    tids = None
    if t.key is not None:
        _name, size, coding = t.fields[t.key]
        at = columns[3 + t.key]
        tids = column(Cursor(at.data), count, size, coding)
    out = [column(c, count, size, 0) for c, size in zip(columns, (4, 8, 8))]
    for c, (_name, size, coding) in zip(columns[3:], t.fields):
        out.append(column(c, count, size, coding, tids))
    return list(zip(*out))


def records(content, count, types, strings):
    if not count:
        raise Bad("block without records")
    c = Cursor(content)
    order = c.take(count)
    present = [types.get(n) for n in sorted(set(order))]
    if None in present:
        raise Bad("type not in the schema")
    widths = [3 + len(t.fields) + (t.tail != TAIL_NONE) for t in present]
    lengths = Cursor(c.take(4 * sum(widths)))
    rows, tails = {}, {}
    for t, width in zip(present, widths):
        columns = cut(c, lengths, width)
        rows[t.number] = iter(table(t, order.count(t.number), columns))
        tails[t.number] = columns[-1]
    c.done()
    for number in order:
        t, row = types[number], next(rows[number])
        values = {f[0]: v for f, v in zip(t.fields, row[3:])}
        line = '{"type": "%s", "space": %d, "seq": %d, "time_ns": %d' % (t.name, *row[:3])
        line += "".join(', "%s": %d' % kv for kv in values.items())
        rest = tail(tails[number], t, values)
        if t.tail == TAIL_STRING:
            strings.see(values["id"], rest)
        print(line + rest + "}")
    for t in present:
        if t.tail in (TAIL_STRING, TAIL_STACK):
            tails[t.number].done()


def blocks(data):
    """(kind, records, content) of each; the end of a cut file is the end."""
    while len(data) >= 24:
        magic, kind, raw_len, comp_len, crc, count = struct.unpack_from("<6I", data)
        if magic != 0x4B4C424D or raw_len > 4 << 20 or comp_len > 4259840 or count > 65536:
            raise Bad("block header")
        payload = data[24 : 24 + comp_len]
        if len(payload) < comp_len:
            break
        if zlib.crc32(data[:16] + bytes(4) + data[20:24] + payload) != crc:
            raise Bad("checksum of a block")
        data = data[24 + comp_len :]
        if kind not in (1, 2):
            continue
        z = subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE, check=False)
        if z.returncode or len(z.stdout) != raw_len:
            raise Bad("zstd")
        yield kind, count, z.stdout


def decode(data):
    if len(data) < 24 or data[:8] != b"MEMPROV\0":
        raise Bad("not a trace of memprov")
    major, _minor, size, flags, crc = struct.unpack_from("<HHIII", data, 8)
    if major != 2 or flags:
        raise Bad("version or flags")
    if not 24 <= size <= 4096 or size > len(data):
        raise Bad("header size")
    if zlib.crc32(data[:20] + bytes(4) + data[24:size]) != crc:
        raise Bad("checksum of the header")
    types, strings = None, Strings()
    for kind, count, content in blocks(memoryview(data)[size:].tobytes()):
        if (kind == 1) == (types is not None):
            raise Bad("schema missing or twice")
        if kind == 1:
            types = schema(content)
        else:
            records(content, count, types, strings)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: decode.py FILE")
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    try:
        decode(data)
    except Bad as e:
        sys.stdout.flush()
        sys.exit("decode.py: %s: %s" % (sys.argv[1], e))


main()
