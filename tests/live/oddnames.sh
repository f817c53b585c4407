#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What a mapping is, is told by the object under it and not by its name: a file called like a memfd
# is a file, private /dev/zero is anonymous memory of its caller; a path longer than a record may
# be is cut, and its pages stay where they are.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
forged="/memfd:memprov-test-$$"
trap 'rm -f "$forged"; cleanup' EXIT
head -c 126976 /dev/zero >"$forged" 2>/dev/null || skip "the root directory cannot be written"

start_command python3 -uc '
import mmap, os, sys
os.chdir(sys.argv[1])
print("ready", os.getpid())
input()
page = mmap.PAGESIZE
def touch(m, n):
    for i in range(n):
        m[i * page] = 1
    return m
keep = []
fd = os.open(sys.argv[2], os.O_RDWR)
keep.append(touch(mmap.mmap(fd, 31 * page), 31))
fd = os.open("/dev/zero", os.O_RDWR)
keep.append(touch(mmap.mmap(fd, 4099 * page, flags=mmap.MAP_PRIVATE), 4001))
# 21 directories of 250 bytes: twice a record.
for _ in range(21):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
fd = os.open("deep", os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, 47 * page)
keep.append(touch(mmap.mmap(fd, 47 * page), 47))
print("done")
input()' "$dir" "$forged"
for walk in tables pagemap; do
	export MEMPROV_WALK=$walk
	rm -f "$trace" "$trace.old"
	if [ "$walk" = tables ]; then
		start_record
		go
	else
		start_record
	fi
	kill -STOP "$pid"
	stop_record
	kill -CONT "$pid"
	"$memprov" report "$trace" >/dev/null || fail "report exits with $?"
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 - "$report" "$forged" "$walk" <<'END' || fail "$walk: a name was believed"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
assert report["check"]["resident"]["residual"] == 0, report["check"]["resident"]
def of(test):
    return [(r["origin"]["kind"], r["costs"]["resident"]["value"] // 4096,
             r["costs"]["reserved"]["value"] // 4096) for r in report["rows"] if test(r["origin"])]
forged = of(lambda o: (o["name"] or "").startswith(sys.argv[2]))
assert forged == [("file", 31, 31)], forged
deep = of(lambda o: "dddddddd" in (o["name"] or ""))
assert deep == [("file", 47, 47)], deep
zero = of(lambda o: o["kind"] in ("file", "shmem") and (o["name"] or "").startswith("/dev/zero"))
assert not zero, zero
if sys.argv[3] == "tables":
    # The only mapping of that size; no other call of the window asked for one.
    own = [r for r in of(lambda o: o["kind"] == "mmap") if r[2] == 4099]
    assert own and sum(r[1] for r in own) == 4001, (own, of(lambda o: o["kind"] == "mmap"))
print("ok", sys.argv[3], forged, deep)
END
done
stop_work
