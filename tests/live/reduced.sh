#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Without root: pictures of one's own processes that add up to Rss, nothing called exact, what is not
# known null with a reason; and what each capability gives back.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
command -v setpriv >/dev/null || skip "needs setpriv"
chmod 755 "$dir"
mkdir -m 777 "$dir/user"
cp "$memprov" "$dir/memprov"
memprov=$dir/memprov
trace=$dir/user/trace
user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
reduced="memprov: record: reduced mode, pictures of your own processes only: no privilege to load BPF programs: CAP_BPF, CAP_PERFMON missing: run as root or grant it"

# record AS...: of $pid, stopped for the last picture.
record() {
	rm -f "$trace" "$trace.old"
	: >"$dir/record.err"
	env --default-signal=INT "$@" "$memprov" record -p "$pid" -o "$trace" 2>"$dir/record.err" &
	recorder=$!
	pids+=("$recorder")
	await is_recording || fail "record says nothing for 30 s"
	kill -0 "$recorder" 2>/dev/null || fail "record ended at once"
	go
	kill -STOP "$pid"
	stop_record
	rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
	"$@" "$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
}

for work in pages guards memfd mapops thp vmas direct; do
	cp "$build/work/$work" "$dir/$work"
	start_command "${user[@]}" "$dir/$work"
	record "${user[@]}"
	grep -qxF "$reduced" "$dir/record.err" || fail "reduced mode is not said"
	python3 - "$report" "$oracle" "$rss" $work <<'END' || fail "$work: the report is wrong"
import json, sys
report, rss, work = json.load(open(sys.argv[1])), int(sys.argv[3]), sys.argv[4]
check = report["check"]
for column in ("resident", "reserved", "swapped", "thp"):
    assert check[column]["residual"] == 0, (column, check[column])
assert check["resident"]["kernel"] == rss, (check["resident"], rss)
assert check["pss"]["status"] == "unjudged" and check["pss"]["residual"] is None, check["pss"]
assert sum(r["costs"]["resident"]["value"] for r in report["rows"]) == rss
for name, why in (("pss", "CAP_SYS_ADMIN"), ("unique", "CAP_SYS_ADMIN"), ("shared", "CAP_SYS_ADMIN"),
                  ("touched", "CAP_BPF"), ("faulted", "CAP_BPF"), ("live", "CAP_BPF")):
    column = report["columns"][name]
    assert not column["available"] and why in column["reason"], (name, column)
    assert report["totals"][name] is None, (name, report["totals"][name])
    assert all(r["costs"][name] is None for r in report["rows"]), name
for row in report["rows"]:
    for name, cost in row["costs"].items():
        assert not cost or not cost.get("exact"), (name, cost)
if work == "pages":
    truth = json.loads(open(sys.argv[2]).readline())
    new = [r for r in report["rows"] if r["origin"]["kind"] == "unattributed"]
    got = sum(r["costs"]["resident"]["value"] for r in new)
    assert got == truth["resident"], (got, truth)
print(f"ok    {work}: as a user, rows add up to Rss {rss}, residual 0, nothing called exact")
END
	stop_work
done

# Another user's process.
start_work pages
says 1 "$reduced
memprov: record: 1 of the processes are of another user: CAP_SYS_PTRACE missing: run as root or grant it" \
	"${user[@]}" "$memprov" record -p "$pid" -o "$dir/user/other"
stop_work

# BPF without page frame numbers: owners are back.
start_work pages
record setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin
python3 - "$report" "$oracle" "$rss" <<'END' || fail "without CAP_SYS_ADMIN: the report is wrong"
import json, sys
report, truth, rss = json.load(open(sys.argv[1])), json.loads(open(sys.argv[2]).readline()), int(sys.argv[3])
mine = [r for r in report["rows"] if any(f.get("function") == truth["owner"] for f in r["origin"].get("stack") or [])]
got = sum(r["costs"]["resident"]["value"] for r in mine)
assert got == truth["resident"], (got, truth)
assert report["check"]["resident"]["residual"] == 0 and report["check"]["resident"]["kernel"] == rss
assert report["totals"]["pss"] is None and not report["columns"]["unique"]["available"]
print(f"ok    without CAP_SYS_ADMIN: {truth['owner']} has its {got} bytes, pss is unknown")
END
stop_work
"${user[@]}" "$memprov" features --format json >"$report"
python3 - "$report" <<'END' || fail "features as a user: $(cat "$report")"
import json, sys
providers = [(c["name"], p) for c in json.load(open(sys.argv[1]))["capabilities"] for p in c["providers"]]
usable = [p["name"] for _, p in providers if p["status"] == "usable"]
assert usable == ["pagemap, no frames"], usable
for name, p in providers:
    assert p["status"] == "usable" or p["reason"], p
    if name in ("map", "fault"):
        assert "CAP_BPF" in p["reason"] and p["remedy"], p
END
echo "ok    features as a user: reasons and remedies"

# Inside a PID namespace processes have other numbers than the kernel's programs see.
memprov=$build/memprov
rm -f "$trace" "$trace.old"
timeout 60 unshare --pid --fork --mount-proc "$memprov" record -o "$trace" -- sleep 0.3 2>"$dir/err" || true
grep -q "^memprov: record: reduced mode, mapping calls and faults are not seen: .*PID namespace: run it outside$" "$dir/err" ||
	fail "a PID namespace is not told: $(cat "$dir/err")"
echo "ok    PID namespace"
