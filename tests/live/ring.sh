#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A storm against a small ring loses events, says how many and what to do, and takes back what it can
# no longer vouch for: flows stay lower bounds, stocks and the residual are right.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
faults=262144 # 4 rounds of 256 MiB, by the source of the loop
record() {
	local status=0
	"$memprov" record -o "$trace" "$@" -- "$build/bench/faultloop" >"$dir/out" 2>"$dir/err" || status=$?
	"$memprov" report "$trace" --format json >"$report" || [ $? = 3 ] || fail "no report"
	return $status
}

status=0
record --buffer 64K || status=$?
[ $status = 3 ] || fail "a loss gives exit $status and not 3"
grep -qE '^memprov: record: [0-9]+ events found no room in the rings: try a larger --buffer$' "$dir/err" ||
	fail "the loss has no remedy: $(cat "$dir/err")"
python3 - "$report" $faults <<'END' || fail "the loss is not what the report says"
import json, sys
report, truth = json.load(open(sys.argv[1])), int(sys.argv[2])
loss = report["recording"]["loss"]
faults = report["totals"]["faults"]
print(f"ok    {loss['causes']} of {truth} faults, {faults['value']} reported")
ring = loss["causes"].get("detail_ring_full", 0)
assert ring > 0 and loss["total"] >= ring, loss
# The start of the program faults too: some hundred times.
assert faults["value"] < truth + 2000 and faults["value"] + ring >= truth, (faults, ring)
assert not faults.get("exact"), faults
END

status=0
# Copies of stacks while the tables of a program just started are built have a limit of their own.
record --buffer 64M || status=$?
[ $status = 0 ] || {
	cat "$dir/err" >&2
	fail "with room for all of it: exit $status"
}
echo "ok    with --buffer 64M nothing is lost"
