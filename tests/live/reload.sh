#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A library that is closed and another that is loaded to the same addresses: neither has the other's
# memory, and what no picture has seen has no name rather than the wrong one.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
start_command "$build/bench/reload" "$build/preload/plugin_one.so" "$build/preload/plugin_two.so"
start_record
go
stop_record
grep -q '"same":1' "$oracle" || skip "the loader found another place for the second library"
"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
python3 - "$report" <<'END' || fail "a library has the memory of another"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
held = {37: "hold_one", 53: "hold_two"}
rows = {}
for row in report["rows"]:
    pages = row["costs"]["reserved"]["value"] // 4096
    if row["origin"]["kind"] == "mmap" and pages in held:
        rows[pages] = [f["function"] for f in row["origin"]["stack"]]
print(rows)
assert rows.keys() == held.keys(), [(r["origin"]["kind"], r["costs"]["reserved"]) for r in report["rows"]]
# The first was gone before anybody looked; the second is there.
assert "hold_two" not in rows[37] and "hold_one" not in rows[53], rows
assert "hold_two" in rows[53], rows
END
stop_work
