#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Incidents, each with an answer key by the workload: the commands of README's table name owner and
# cause, in at most five. (An OOM kill: live.flight.)
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
group=
drop_group() {
	local i
	for ((i = 0; i < 50; i++)); do
		[ -d "$group" ] || return 0
		rmdir "$group" 2>/dev/null || sleep 0.1
	done
	echo "note: $group is left"
}
trap 'cleanup; [ -z "$group" ] || drop_group' EXIT
cd "$dir"
trace=memprov.data

key() { # OWNER FIELD
	sed -n "s/.*\"owner\":\"$1\".*\"$2\":\([0-9]*\).*/\1/p" "$oracle"
}
shows() { # FILE REGEX WHAT
	grep -qE -- "$2" "$1" || fail "$3: no '$2' in $(cat "$1")"
}

echo "# memory grew with a deploy"
for version in 1009 4001; do
	start_command "$build/bench/incident" deploy $version
	start_record
	go
	stop_record
	[ $version = 4001 ] || before=$(key session_cache_fill resident)
	stop_work
done
grown=$(($(key session_cache_fill resident) - before))
"$memprov" diff >diff.txt || fail "diff exits with $?"
"$memprov" diff --format json >diff.json || fail "diff exits with $?"
python3 - diff.json $grown <<'END' || fail "diff does not name who grew"
import json
import sys

row = json.load(open(sys.argv[1], encoding="utf-8"))["rows"][0]
assert row["delta"]["value"] == int(sys.argv[2]), row["delta"]
assert any(f["function"] == "session_cache_fill" for f in row["origin"]["stack"]), row
END
[ "$(awk '/ exact | new | function | gone / && !n++' diff.txt | grep -c session_cache_fill)" = 1 ] || fail "not on top: $(cat diff.txt)"
got=0
"$memprov" diff --fail-on 'resident>+10%' >/dev/null || got=$?
[ $got = 4 ] || fail "the rule does not trip: $got"
"$memprov" report --by grown --format table >report.txt || fail "report exits with $?"
[ "$(awk '/RESIDENT.*OWNER/ { rows = 1; next } rows && !n++' report.txt | grep -c session_cache_fill)" = 1 ] || fail "not on top: $(cat report.txt)"
echo "ok    session_cache_fill grew by $grown"

echo "# the heap profiler sees a quarter"
rm -f memprov.data*
start_command "$build/bench/incident" waste
start_record --alloc uprobe
go
stop_record
"$memprov" report --view waste >waste.txt || fail "report exits with $?"
"$memprov" report --format json --group function >waste.json || fail "report exits with $?"
"$memprov" report --why arena_create >why.txt || fail "report exits with $?"
python3 - waste.json "$oracle" >huge.txt <<'END' || fail "report does not say what is wasted: $(cat waste.txt)"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
keys = {k["owner"]: k for k in map(json.loads, open(sys.argv[2], encoding="utf-8"))}
rows = {r["origin"]["name"]: r["costs"] for r in report["rows"] if r["origin"]["kind"] == "malloc"}
node, key = rows["index_node"], keys["index_node"]
assert node["live"]["value"] == key["live"], (node["live"], key)
# Of what was freed free() itself wrote over nothing that is not on these pages.
assert key["freed"] * 0.99 <= node["freed"]["value"] <= key["freed"], (node["freed"], key)
assert report["classes"]["freed"]["value"] > 2.5 * node["live"]["value"]
huge = [r["costs"] for r in report["rows"] if r["origin"]["name"] == "arena_create"]
print("huge pages of arena_create:", sum(c["thp"]["value"] for c in huge), "of", keys["arena_create"]["huge"])
assert sum(c["resident"]["value"] for c in huge) >= keys["arena_create"]["written"] * 4096
if sum(c["thp"]["value"] for c in huge):
    assert sum(c["thp"]["value"] for c in huge) == keys["arena_create"]["huge"]
END
shows waste.txt "Rss .* = live .* \+ freed .* \+ slack " "the sum"
shows waste.txt "LIVE +FREED +SLACK" "the view"
if grep -q ": 0 of" huge.txt; then
	echo "note: the kernel had no huge pages to give"
else
	shows why.txt "may hold more than was ever written" "--why"
fi
stop_work
echo "ok    index_node: live $(key index_node live), freed $(key index_node freed)"

echo "# a container at its limit"
mount=$(awk '$0 ~ / - cgroup / && $NF ~ /(^|,)memory(,|$)/ { print $5; exit }' /proc/self/mountinfo)
[ -n "$mount" ] || mount=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
if [ -r /proc/kpagecgroup ] && [ -n "$mount" ] && mkdir "$mount/memprov-incident-$$" 2>/dev/null; then
	group=$mount/memprov-incident-$$
	mkdir files
	# The command's own shell expands them.
	# shellcheck disable=SC2016
	start_command bash -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - "$group" "$build/bench/incident" limit "$dir/files"
	go
	"$memprov" record -q --cgroup "of:$pid" -w 300ms -o memprov.data || fail "record exits with $?"
	"$memprov" report >limit.txt || fail "report exits with $?"
	"$memprov" report --format json >limit.json || fail "report exits with $?"
	python3 - limit.json "$oracle" <<'END' || fail "report does not say what fills it: $(cat limit.txt)"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
key = json.loads(open(sys.argv[2], encoding="utf-8").read())
charged = {}
for row in report["rows"]:
    if row["origin"]["kind"] == "memcg" and row["costs"]["charged"]:
        charged[row["origin"]["name"].split(" ")[0]] = row["costs"]["charged"]["value"]
cache, shmem = charged.get("file", charged.get("cache", 0)), charged.get("shmem", 0)
print(charged, key)
# What wrote the pages brought some of its own into the cache, too; nothing reclaims here.
assert key["shmem"] <= shmem <= key["shmem"] + (1 << 20), (shmem, key)
assert key["cache"] * 0.9 <= cache <= key["cache"] + (16 << 20), (cache, key)
anon = sum(r["costs"]["charged"]["value"] for r in report["rows"]
           if r["origin"]["kind"] != "memcg" and r["costs"]["charged"])
assert anon < key["cache"] / 4, anon
END
	shows limit.txt "cgroup .*memprov-incident" "the group"
	shows limit.txt "else \(kind memcg\)" "the parts"
	[ "$(awk '/CHARGED.*OWNER/ { rows = 1; next } rows && n++ < 2' limit.txt | grep -c memcg)" = 2 ] || fail "not on top: $(cat limit.txt)"
	stop_work
	echo "ok    page cache and shared memory fill the group"
else
	echo "note: SKIPPED, no /proc/kpagecgroup or no memory cgroup: the container"
fi
