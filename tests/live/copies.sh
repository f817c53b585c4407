#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Where tables are not there yet, or have no rule that the unwinder in BPF can follow, the stack is
# copied and unwound afterwards: whole, as the program called. Copies are bounded, and counted.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
gcc -O2 -g -Wall -Wextra -fomit-frame-pointer -fno-optimize-sibling-calls -o "$dir/copied" "$here/../stacks/copied.c"

# stacks NAME CALLERS...: all that fill touched, and how its stacks are.
stacks() {
	"$memprov" report "$trace" --owner fault --format json >"$report" || fail "report exits with $?"
	python3 - "$report" "$oracle" "$@" <<'END' || fail "$1: the stacks are wrong"
import json, sys
report, oracle, mode, *callers = sys.argv[1:]
touched = [int(l.split()[1]) for l in open(oracle) if l.startswith("touched")][0]
report = json.load(open(report))
sums = {}
for row in report["rows"]:
    stack = [f["function"] for f in row["origin"]["stack"] or []]
    if stack[:1] != ["fill"]:
        continue
    whole = stack[1:1 + len(callers)] == callers and stack[-1] == "_start"
    key = row["origin"]["unwound_by"], row["origin"]["unwound_end"], whole
    sums[key] = sums.get(key, 0) + row["costs"]["resident"]["value"]
loss = report["recording"]["loss"]
print(mode, touched, sums, loss["causes"])
assert sum(sums.values()) == touched, "bytes are missing"
assert not loss["total"]
for (by, end, whole), n in sums.items():
    assert whole == (end == "whole"), "called whole and is not, or the reverse"
copied = sums.get(("copied stack", "whole", True), 0)
if mode == "now":
    # How much of it the tables were too late for is a matter of time.
    assert sum(n for (_, _, whole), n in sums.items() if whole) == touched
    assert not loss["causes"]
elif mode == "later":
    assert copied == touched and not loss["causes"]
else:
    assert 4096 * 512 <= copied < touched, "as many as may be are copied"
    assert loss["causes"]["stack_uncopied"] >= (touched - copied) >> 12, "the others are counted"
END
}

# The recorder's own child.
: >"$oracle"
mkfifo "$dir/in"
exec {to}<>"$dir/in"
env --default-signal=INT "$memprov" record -o "$trace" -- "$dir/copied" now <"$dir/in" >"$oracle" 2>"$dir/record.err" &
recorder=$!
pids+=("$recorder")
await grep -q '^done' "$oracle" || fail "the program is not done"
stop_record
stacks now outer main
exec {to}>&-

start_command "$dir/copied" later
start_record
go
stop_record
stacks later by_r12 outer main
"$memprov" report "$trace" --owner fault --why "$(python3 -c '
import json, sys
print(next(r["id"] for r in json.load(open(sys.argv[1]))["rows"]
           if [f["function"] for f in r["origin"]["stack"] or []][:1] == ["fill"]))' "$report")" >"$dir/why"
grep -q "^  stack, unwound by copied stack, whole:$" "$dir/why" || fail "--why does not say how: $(cat "$dir/why")"
stop_work

start_command "$dir/copied" many
start_record
go
stop_record
stacks many by_r12 each main
stop_work
