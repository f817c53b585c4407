#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every resident byte is in one class: live is what the workload counted, the others are what the
# kernel's smaps says by name, and they add up to the Rss, whoever is made the owner.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

judge() {
	local owner
	rm -f "$trace" "$trace.old"
	start_work "$1"
	start_record
	go
	kill -STOP "$pid"
	stop_record
	cp "/proc/$pid/smaps" "$dir/smaps"
	for owner in auto alloc fault; do
		"$memprov" report "$trace" --owner "$owner" --format json >"$report" || fail "report exits with $?"
		"$memprov" report "$trace" --owner "$owner" --bytes --format table >"$dir/table"
		python3 - "$report" "$oracle" "$dir/smaps" "$dir/table" <<'END' || fail "--owner $owner: the classes are wrong"
import json
import re
import sys

report_path, oracle_path, smaps_path, table_path = sys.argv[1:]
with open(report_path, encoding="utf-8") as f:
    report = json.load(f)
live = {}
with open(oracle_path, encoding="utf-8") as f:
    for line in f:
        truth = json.loads(line)
        if "owner" in truth:
            live[truth["owner"]] = truth["resident"]
kernel = dict.fromkeys(["file", "shmem", "stack", "special", "anonymous"], 0)
with open(smaps_path, encoding="utf-8") as f:
    for line in f:
        words = line.split()
        if re.match("[0-9a-f]+-", line):
            name = words[5] if len(words) > 5 else ""
            what = ("shmem" if re.match("/(memfd:|SYSV|dev/zero|dev/shm/)", name)
                    else "file" if name.startswith("/") else "stack" if name == "[stack]"
                    else "anonymous" if name in ("", "[heap]") else "special")
        elif words[0] == "Rss:":
            kernel[what] += int(words[1]) * 1024
want = {k: kernel[k] for k in ("file", "shmem", "stack", "special")}
want.update(live=sum(live.values()), freed=None, slack=None, unattributed=0)
want["preexisting"] = kernel["anonymous"] - want["live"]
got = {k: v if v is None else v["value"] for k, v in report["classes"].items()}
if got != want:
    sys.exit(f"memprov {got}\ntruth   {want}")
if sum(v or 0 for v in got.values()) != sum(kernel.values()):
    sys.exit("the classes do not add up to the Rss")
if report["totals"]["live"]["value"] != got["live"]:
    sys.exit("the column live is another number than the class")
with open(table_path, encoding="utf-8") as f:
    screen = re.search(r"^  Rss (.*)^  kernel ", f.read(), re.M | re.S).group(1)
left, right = screen.split(" = ")
terms = [int(n) for n in re.findall(r" (\d+)(?=\s)", right)]
if int(left) != sum(kernel.values()) or sum(terms) != int(left):
    sys.exit(f"the screen does not add up: {left} = {terms}")
print("ok   ", got)
END
	done
	stop_work
}

# Maps while it is watched; has mapped all before.
judge mapops
judge alloc
