#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# features tries what it names: each capability once, its providers best first, with the self-tests'
# words.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
"$memprov" features --format json >"$dir/features.json" || fail "features exits with $?"
"$memprov" features >"$dir/features.txt" || fail "features exits with $?"
python3 - "$dir/features.json" "$dir/features.txt" <<'END' || fail "features is wrong"
import json
import sys

doc = json.load(open(sys.argv[1], encoding="utf-8"))
assert doc["schema"] == "memprov-features/1"
names = [c["name"] for c in doc["capabilities"]]
assert len(names) == len(set(names)), names
lines = open(sys.argv[2], encoding="utf-8").read().splitlines()
rows = [(c["name"], p) for c in doc["capabilities"] for p in c["providers"]]
assert lines.pop(0).split() == ["CAPABILITY", "PROVIDER", "STABILITY", "STATUS", "GRADE", "REASON"]
assert len(lines) == len(rows), (len(lines), len(rows))
for line, (name, p) in zip(lines, rows):
    assert line.startswith(name) and p["name"] in line, line
    assert p["status"] in ("usable", "absent", "untested"), p
    usable = p["status"] == "usable"
    assert p["grade"] in (("exact", "inferred", "sampled") if usable else ("-",)), p
    assert p["status"] == "usable" or p["reason"], p
for name in ("map", "fault"):
    first = next(c for c in doc["capabilities"] if c["name"] == name)["providers"][0]
    assert "self-test" in first["reason"], first
print("ok features", names)
END
