#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Resources that an application names: of each shard of a cache resident, reserved, touched and the
# time since it was served are what the cache says; three seeds, attached to and launched. Rules name
# what has no name.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

now() {
	python3 -c 'import time; print(time.monotonic_ns())'
}

# judge [OPTION...]: the report by resource against the oracle.
judge() {
	"$memprov" report "$trace" --group resource --format json "$@" >"$report" || fail "report exits with $?"
	python3 "$here/shards.py" "$report" "$oracle" "$ended" "$done_at" || fail "the report is wrong"
}

for seed in 1 2 3; do
	echo "# attached to, seed $seed"
	rm -f "$trace" "$trace.old"
	start_work shards "$seed"
	start_record
	go
	ended=$(now)
	stop_record
	done_at=$(now)
	judge
	stop_work
done

echo "# by stack its shards are one row again"
"$memprov" report "$trace" --format json --filter 'function=cache_arena_map' >"$report"
python3 - "$report" "$oracle" <<-'EOF' || fail "the rows of the arena are wrong"
	import json, sys
	rows = json.load(open(sys.argv[1]))["rows"]
	truth = [json.loads(line) for line in open(sys.argv[2])]
	assert len(rows) == 1, [r["origin"] for r in rows]
	assert rows[0]["origin"]["resource"] is None, rows[0]["origin"]
	assert rows[0]["costs"]["reserved"]["value"] == rows[0]["costs"]["reserved"]["exact"] == 24 << 20, rows[0]
	assert rows[0]["costs"]["resident"]["value"] >= sum(t["resident"] for t in truth)
EOF

echo "# a filter by resource and idle time"
name=$(python3 -c 'import json, sys
t = max((json.loads(l) for l in open(sys.argv[1])), key=lambda t: t["resident"])
print(t["resource"])' "$oracle")
"$memprov" report "$trace" --format json --filter "resource=$name and idle>=1ms" >"$report"
python3 - "$report" "$oracle" "$name" <<-'EOF' || fail "the rows of $name are wrong"
	import json, sys
	rows = json.load(open(sys.argv[1]))["rows"]
	truth = {t["resource"]: t for t in map(json.loads, open(sys.argv[2]))}[sys.argv[3]]
	assert sum(r["costs"]["resident"]["value"] for r in rows) == truth["resident"], (rows, truth)
	assert all(r["origin"]["resource"] == sys.argv[3] for r in rows)
EOF

echo "# rules, when it is reported"
cat >"$dir/rules" <<-'EOF'
	# the arena is what no shard has of it
	arena = function cache_arena_*

	code = file */shards
	libraries = file *.so*
	main stack = mapping [[]stack[]]
EOF
"$memprov" report "$trace" --names "$dir/rules" --group resource --format json >"$report"
python3 - "$report" "$oracle" <<-'EOF' || fail "the rules name something else"
	import json, sys
	report = json.load(open(sys.argv[1]))
	rows = {r["origin"]["name"]: r["costs"] for r in report["rows"] if r["origin"]["kind"] == "resource"}
	named = sum(t["reserved"] for t in map(json.loads, open(sys.argv[2])))
	assert rows["arena"]["reserved"]["value"] == (24 << 20) - named, rows["arena"]
	assert rows["arena"]["idle"] is None
	assert {"code", "libraries", "main stack"} < set(rows), sorted(rows)
EOF

echo "# launched, with rules; the shards are named from the start"
rm -f "$trace" "$trace.old"
start_command env --default-signal=INT "$memprov" record -o "$trace" --names "$dir/rules" -- "$build/work/shards" 4 2>"$dir/record.err"
recorder=$WORK_PID
go
ended=$(now)
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
[ "$status" = 0 ] || fail "record exits with $status"
unset 'pids[-1]'
exec {from}<&- {to}>&-
done_at=$(now)
"$memprov" report "$trace" --group resource --format json >"$report"
python3 - "$report" "$dir/mine.json" <<-'EOF'
	import json, sys
	report = json.load(open(sys.argv[1]))
	names = {r["origin"]["name"] for r in report["rows"]}
	assert "arena" in names and "main stack" in names, names
	report["rows"] = [r for r in report["rows"] if r["origin"]["name"] not in ("arena", "code", "libraries", "main stack")] + [
	    dict(r, origin=dict(r["origin"], kind="rule")) for r in report["rows"] if r["origin"]["name"] in ("arena", "code", "libraries", "main stack")]
	json.dump(report, open(sys.argv[2], "w"))
EOF
python3 "$here/shards.py" "$dir/mine.json" "$oracle" "$ended" "$done_at" || fail "the report is wrong"

echo "# top"
"$memprov" top -i "$trace" --by idle >"$dir/top"
grep -q " IDLE " "$dir/top" || fail "top does not show idle"

echo "# files that are no rules"
while IFS='|' read -r text why; do
	printf '%b' "$text" >"$dir/bad"
	says 1 "memprov: report: --names $dir/bad$why" "$memprov" report "$trace" --names "$dir/bad"
done <<-'EOF'
	cache function f\n|:1: no '=': NAME = function|mapping|file PATTERN
	# a\n\nx = functions f\n|:3: behind '=' comes function, mapping or file
	= file f\n|:1: a name has 1 to 123 bytes
	x = file\n|:1: a pattern is missing
	x = file \0\n|: not a text file
EOF
says 1 "memprov: report: --names $dir/none: No such file or directory" "$memprov" report "$trace" --names "$dir/none"
