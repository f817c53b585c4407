#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The walk by the page tables and the one by pagemap, each the only one in use, give every owner the
# same pages; a walk of several chunks while the target maps and unmaps stays between the kernel's
# own readings and calls nothing exact that is not.
# usage: walkers.sh BUILDDIR [WORK...]: of these workloads only
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
want_swap
"$memprov" features | grep -e 'BPF page-table walk .*usable' >/dev/null ||
	skip "$("$memprov" features | sed -n 's/.*BPF page-table walk//p')"

record_by() { # PROVIDER
	MEMPROV_WALK=$1 start_record
	sleep 0.3
	stop_record
	"$memprov" report "$trace" --format json >"$dir/$1.json" || fail "report exits with $?"
	"$memprov" report "$trace" --format json >"$report"
	python3 "$here/check.py" "$report" || fail "$1: the rows do not add up"
	rm -f "$trace" "$trace.old"
}

works=("${@:2}")
if [ ${#works[@]} = 0 ]; then
	works=(direct guards mapops memfd objswap protnone thp vmas chunks)
fi
for work in "${works[@]}"; do
	[ "$work" != chunks ] || continue
	echo "# $work"
	start_work "$work"
	go
	kill -STOP "$pid"
	record_by tables
	record_by pagemap
	python3 - "$dir/tables.json" "$dir/pagemap.json" <<'END' || fail "$work: the two walks differ"
import json
import sys

columns = ["reserved", "resident", "pss", "unique", "shared", "thp", "swapped"]
columns += [f"node{i}" for i in range(8)]


def rows(path, provider):
    report = json.load(open(path, encoding="utf-8"))
    used = [h["provider"] for h in report["recording"]["hooks"] if h["capability"] == "snapshot"]
    assert used == [provider], used
    out = {}
    for row in report["rows"]:
        key = (row["origin"]["kind"], row["origin"].get("name"), row["origin"].get("pid"))
        sums = out.setdefault(key, dict.fromkeys(columns, 0))
        for c in columns:
            # Other processes map the system's libraries and the vdso, and come and go.
            if row["origin"]["kind"] in ("file", "special") and c in ("pss", "shared"):
                continue
            v = row["costs"].get(c)
            sums[c] += v["value"] if v else 0
    assert any(v["resident"] for v in out.values())
    return out


a = rows(sys.argv[1], "BPF page-table walk")
b = rows(sys.argv[2], "pagemap")
wrong = [k for k in a.keys() | b.keys() if a.get(k) != b.get(k)]
for k in wrong:
    print("WRONG", k, "tables", a.get(k), "pagemap", b.get(k))
node0 = sum(v["node0"] for v in a.values())
print(f"ok {len(a)} owners, {sum(v['resident'] for v in a.values())} B resident, {node0} B on node 0")
sys.exit(bool(wrong))
END
	kill -CONT "$pid"
	stop_work
done

if [ "${works[-1]}" != chunks ]; then
	echo "ok walkers"
	exit 0
fi

# Four chunks and more, while another thread maps, touches and unmaps all the time. The big mapping
# was there before, stands still and must be whole and exact whatever goes on beside it.
echo "# chunks"
start_work chunks
go
start_record
sleep 1.5
stop_record
"$memprov" report "$trace" --format json >"$report"
python3 - "$report" "$oracle" <<'END' || fail "a walk of several chunks is wrong"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
truth = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8") if line[0] == "{"][0]
check = report["check"]["resident"]
sum_ = check["attributed"] + check["unattributed"]
lo, hi = sorted((check["kernel"], check["kernel_before"]))
slack = truth["churn"]
assert lo - slack <= sum_ <= hi + slack, check
still = [r for r in report["rows"] if r["costs"]["resident"] and
         r["costs"]["resident"]["value"] == truth["still"] and r["origin"]["kind"] == "shmem"]
assert len(still) == 1, [(r["origin"], r["costs"]["resident"]) for r in report["rows"][:5]]
cost = still[0]["costs"]["resident"]
assert cost.get("exact", 0) == truth["still"], cost
names = [(r, [f.get("function") for f in r["origin"].get("stack") or []]) for r in report["rows"]]
churn = [r for r, stack in names if "churn" in stack and "keep" not in stack]
for row in churn:
    assert row["costs"]["resident"]["value"] <= truth["churn"], row["costs"]["resident"]
print("ok chunks:", check["status"], "still", cost["value"], "churn rows", len(churn))
END

# Whatever moment a picture is taken at, what is mapped then has the call that made it.
for round in 1 2 3 4 5 6; do
	rm -f "$trace" "$trace.old"
	start_record
	sleep "0.$round"
	stop_record
	"$memprov" report "$trace" --format json >"$report"
	python3 - "$report" <<'END' || fail "round $round: a mapping made while the picture was taken has no owner"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
assert report["recording"]["loss"]["total"] == 0
for row in report["rows"]:
    assert row["origin"]["kind"] != "unattributed", (row["origin"], row["costs"]["resident"])
END
done
echo "ok nothing is unattributed"
stop_work

# The file itself: chunks follow each other without a gap and cover everything.
python3 "$here/../decoder/decode.py" "$trace" >"$dir/dump" || fail "the second decoder"
grep -q chunk "$dir/dump" || fail "no CHUNK in the trace"
echo "ok walkers"
