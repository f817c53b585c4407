#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Reads a pprof profile by the description of the format: wire types and field numbers.

Checks that it refers to nothing that is not there, and prints it as JSON."""
import gzip
import json
import sys


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def fields(data):
    """Number to values; a length-delimited value is bytes."""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            if at + size > len(data):
                raise ValueError("a field ends behind its message")
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {key & 7}")
        found.setdefault(key >> 3, []).append(value)
    return found


def numbers(message, field, signed=False):
    """A repeated number, packed or not."""
    values = []
    for value in message.get(field, []):
        if isinstance(value, int):
            values.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            values.append(number)
    if signed:
        values = [v - (1 << 64) if v >> 63 else v for v in values]
    return values


def number(message, field):
    return message.get(field, [0])[-1]


def read(path):
    with gzip.open(path) as file:
        top = fields(file.read())
    strings = [s.decode("utf-8") for s in top[6]]
    assert strings[0] == "", "string 0 is not empty"

    def messages(field):
        return [fields(m) for m in top.get(field, [])]

    def by_id(field):
        all_of = {number(m, 1): m for m in messages(field)}
        assert 0 not in all_of and len(all_of) == len(top.get(field, [])), "ids"
        return all_of

    mappings, functions, locations = by_id(3), by_id(5), by_id(4)
    types = [(strings[number(t, 1)], strings[number(t, 2)]) for t in messages(1)]
    stacks = {}
    for key, location in locations.items():
        lines = [fields(line) for line in location.get(4, [])]
        names = [strings[number(functions[number(line, 1)], 2)] for line in lines]
        mapping = number(location, 2)
        if mapping:
            assert number(location, 3) < number(mappings[mapping], 3), "address outside"
        stacks[key] = (names, mapping)
    samples = []
    for sample in messages(2):
        values = numbers(sample, 2, signed=True)
        assert len(values) == len(types), "values"
        labels = {}
        for label in map(fields, sample.get(3, [])):
            text = strings[number(label, 2)]
            labels[strings[number(label, 1)]] = text or number(label, 3)
        frames = [stacks[key] for key in numbers(sample, 1)]
        samples.append(
            {
                "values": dict(zip([t for t, _ in types], values)),
                "labels": labels,
                "stack": [name for names, _ in frames for name in names],
            }
        )
    return {
        "types": types,
        "default": strings[number(top, 14)],
        "comments": [strings[n] for n in numbers(top, 13)],
        "duration": number(top, 10),
        "mappings": [
            {"file": strings[number(m, 5)], "build_id": strings[number(m, 6)]}
            for m in mappings.values()
        ],
        "samples": samples,
    }


if __name__ == "__main__":
    json.dump(read(sys.argv[1]), sys.stdout)
