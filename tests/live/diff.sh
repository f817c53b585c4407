#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Two seeds of the demo: what grew between them is what the demo says it mapped more.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -x "$build/demo" ] || fail "no $build/demo: build the demo target"

# record_seed NAME SEED: $dir/NAME is the trace, $dir/NAME.oracle what the demo says.
record_seed() {
	trace=$dir/$1
	start_command "$build/demo" "$2"
	start_record
	go
	stop_record
	cp "$oracle" "$dir/$1.oracle"
	stop_work
}

# expect STATUS WHAT DIFF-ARGUMENT...
expect() {
	local want=$1 what=$2 status=0
	shift 2
	"$memprov" diff "$@" >"$dir/out" 2>"$dir/err" || status=$?
	[ "$status" = "$want" ] || fail "$what: exit status $status, not $want: $(cat "$dir/err")"
}

# The demo leaves files when it is killed.
export TMPDIR=$dir
record_seed base 1
record_seed new 2

expect 0 "a file with itself" "$dir/base" "$dir/base" --format json
cp "$dir/out" "$dir/self.json"
expect 0 "two seeds" "$dir/base" "$dir/new" --format json
cp "$dir/out" "$dir/two.json"

python3 - "$dir" <<'END' || fail "the difference is wrong"
import json
import sys

directory = sys.argv[1]


def load(name):
    with open(f"{directory}/{name}", encoding="utf-8") as lines:
        return json.load(lines)


def oracle(name):
    with open(f"{directory}/{name}.oracle", encoding="utf-8") as lines:
        truths = [json.loads(line) for line in lines if line.startswith("{")]
    return {t["owner"]: t["resident"] for t in truths if "object" not in t}


wrong = 0
if load("self.json")["rows"]:
    print("a file differs from itself:", load("self.json")["rows"])
    wrong = 1
diff, base, new = load("two.json"), oracle("base"), oracle("new")
assert diff["schema"] == "memprov-diff/1"
assert base.keys() == new.keys() and base != new
for owner in sorted(base):
    rows = [r for r in diff["rows"] if r["origin"]["function"] == owner]
    want, got = new[owner] - base[owner], sum(r["delta"]["value"] for r in rows)
    good = want == got and all(r["match"] == "exact" and r["significant"] for r in rows)
    print(f"{'ok' if good else 'WRONG'} {owner}: grew by {want}, diff says {got}")
    wrong |= not good
sys.exit(wrong)
END

expect 0 "a rule that holds" "$dir/base" "$dir/new" --fail-on 'resident>+1G' --fail-on 'resident>+900%'
# One of the two directions is growth.
if "$memprov" diff "$dir/base" "$dir/new" --fail-on 'resident>+0' >"$dir/out"; then
	expect 4 "a rule that trips" "$dir/new" "$dir/base" --fail-on 'resident>+0'
else
	expect 4 "a rule that trips" "$dir/base" "$dir/new" --fail-on 'resident>+0'
	expect 0 "shrinking" "$dir/new" "$dir/base" --fail-on 'resident>+0'
fi

# One owner: what it grew by is the demo's own word.
held() { # OWNER SIDE
	sed -n "s/.*\"owner\":\"$1\".*\"resident\":\([0-9]*\).*/\1/p" "$dir/$2.oracle"
}
more=hot_shard_create
by=$(($(held $more new) - $(held $more base)))
[ $by -gt 0 ] || fail "the demo's seeds are not as they were: $more grows by $by"
expect 4 "an owner that grew" "$dir/base" "$dir/new" --fail-on "$more:resident>+$((by - 1))"
expect 0 "an owner that grew by less" "$dir/base" "$dir/new" --fail-on "$more:resident>+$by"
expect 3 "an owner that is nowhere" "$dir/base" "$dir/new" --fail-on 'nosuch:resident>+1'
expect 2 "an owner without a name" "$dir/base" "$dir/new" --fail-on ':resident>+1'
expect 0 "both sides" "$dir/base" "$dir/new"
[ "$(grep -cE "^  (base: |new:  )$(uname -n), demo \([0-9]+\), [0-9.]+ s to 20.* UTC, lost 0 events, Linux $(uname -r)\$" "$dir/out")" = 2 ] ||
	fail "the sides are not named: $(cat "$dir/out")"

# A process that sleeps faults on nothing, which is seen.
start_command bash -c 'echo ready $$; exec sleep 60'
await grep -q sleep "/proc/$pid/comm"
sleep 0.2
"$memprov" record -p "$pid" -w 0.2s -o "$dir/idle" 2>"$dir/record.err" || fail "record of an idle process"
stop_work
# The rule's column is the one that is shown, unless another is asked for.
expect 0 "a rule shows its column" "$dir/base" "$dir/new" --fail-on 'reserved>+900%'
grep -qx "reserved" "$dir/out" || fail "shown: $(head -n 1 "$dir/out")"
expect 0 "--by shows another" "$dir/base" "$dir/new" --fail-on 'reserved>+900%' --by swapped
grep -qx "swapped" "$dir/out" || fail "shown: $(head -n 1 "$dir/out")"

expect 4 "no fault seen is none" "$dir/idle" "$dir/new" --fail-on 'faults>+900%'
expect 3 "a column without evidence" "$dir/idle" "$dir/new" --fail-on 'charged>+900%'
grep -q "^undecided: charged>+900%: base" "$dir/out" || fail "no reason: $(cat "$dir/out")"
expect 4 "failed beats undecided" "$dir/idle" "$dir/new" --fail-on 'charged>+900%' --fail-on 'resident>+0'
expect 0 "no rule, nothing to judge" "$dir/idle" "$dir/new" --by faults
# A file that ends in the middle.
head -c "$(($(stat -c %s "$dir/new") - 9))" "$dir/new" >"$dir/cut"
expect 3 "a file cut short" "$dir/base" "$dir/cut" --fail-on 'resident>+900%'
expect 1 "an unknown column" "$dir/base" "$dir/new" --fail-on 'residnt>+5%'
grep -q "nearest is resident" "$dir/err" || fail "no nearest column"
for rule in resident 'resident>5%' 'resident>+' 'resident>+5Q' 'resident>+-5%' 'resident>+5%%'; do
	expect 2 "malformed rule $rule" "$dir/base" "$dir/new" --fail-on "$rule"
done
expect 2 "one file" "$dir/base"
cp "$dir/base" "$dir/memprov.data.old"
cp "$dir/new" "$dir/memprov.data"
cd "$dir"
expect 0 "the default files" --format json
cmp "$dir/out" "$dir/two.json" || fail "the default files are not memprov.data.old and memprov.data"

# Two callers of malloc, the same frames of the C library between them and the kernel.
record_callers() { # NAME BLOCKS
	trace=$dir/$1
	start_work callers "$2"
	start_record
	go
	stop_record
	stop_work
}
record_callers few 2
record_callers many 7
expect 0 "two callers" "$dir/few" "$dir/many" --by reserved --format json
cp "$dir/out" "$dir/callers.json"
"$memprov" report "$dir/many" --columns reserved --format table >"$dir/callers.txt"
python3 - "$dir/callers.json" "$dir/callers.txt" <<'END' || fail "callers of malloc are mixed up"
import json
import sys

# glibc asks for a page more than the block, for its own word.
block = (1 << 20) + 4096
by = {"cache_fill": 0, "parse": 0}
for row in json.load(open(sys.argv[1], encoding="utf-8"))["rows"]:
    names = [f["function"] for f in row["origin"]["stack"]]
    for name in by:
        if name in names:
            by[name] += (row["delta"] or {"value": 0})["value"]
print(by)
assert by == {"cache_fill": 5 * block, "parse": 0}, by
screen = open(sys.argv[2], encoding="utf-8").read()
assert "fill < cache_fill < main" in screen and "fill < parse < main" in screen, screen
assert "by malloc)" in screen or "by __libc_malloc)" in screen, screen
END
