#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What memprov says, and the status it exits with, when it cannot go on: one line with the object, the
# reason and what to do.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

# expect STATUS TEXT COMMAND...: TEXT is part of what it prints on stderr.
expect() {
	local want=$1 text=$2 got=0
	shift 2
	timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
	[ "$got" = "$want" ] || {
		cat "$dir/err" >&2
		fail "$*: exit $got instead of $want"
	}
	grep -qF -- "$text" "$dir/err" || {
		cat "$dir/err" >&2
		fail "$*: stderr lacks: $text"
	}
	echo "ok    exit $want: ${*:2}"
}

need_bpf
cd "$dir"
mp="memprov: record:"

echo "# targets"
if [ ! -e /proc/999999 ]; then
	says 1 "$mp no process 999999: check the PID with ps" "$memprov" record -p 999999 -o "$trace"
fi
says 1 "$mp process 2 has no memory of its own: a kernel thread or already exited" \
	"$memprov" record -p 2 -o "$trace"
# A process that has exited and that nobody waits for.
python3 -c 'import os, sys, time
pid = os.fork()
if not pid:
    os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(pid, flush=True)
time.sleep(60)' >zombie &
pids+=("$!")
await test -s zombie || fail "no zombie"
says 1 "$mp process $(cat zombie) has no memory of its own: a kernel thread or already exited" \
	"$memprov" record -p "$(cat zombie)" -o "$trace"
says 1 "$mp no process named nosuchcomm: check with ps -e" "$memprov" record --comm nosuchcomm -o "$trace"
says 1 "$mp --cgroup of:x: not a process id behind of:" "$memprov" record --cgroup of:x -o "$trace"
expect 2 "usage" "$memprov" nosuch
[ ! -s "$dir/out" ] || fail "usage after a mistake goes to stdout"

echo "# CMD"
says 127 "$mp /nonexistent: No such file or directory: check the command's path" \
	"$memprov" record -o "$trace" -- /nonexistent
says 126 "$mp /etc/passwd: Permission denied: check the command's path" \
	"$memprov" record -o "$trace" -- /etc/passwd
expect 7 "" "$memprov" record -o "$trace" -- sh -c "exit 7"
# The command's shell expands $$.
# shellcheck disable=SC2016
expect 143 "" "$memprov" record -o "$trace" -- sh -c 'kill -TERM $$'
# At the end of the window CMD is ended as perf-record(1) ends its own: SIGTERM, awaited.
expect 0 "" "$memprov" record -w 300ms -o "$trace" -- sh -c "trap 'echo ended >$dir/term; exit 5' TERM; while :; do sleep 0.05; done"
[ "$(cat "$dir/term")" = ended ] || fail "CMD outlives the window or had no SIGTERM"

echo "# kernel"
# The inner shell expands its arguments.
# shellcheck disable=SC2016
no_btf=(unshare -m bash -c 'mount -t tmpfs none /sys/kernel/btf && exec "$@"' -)
# shellcheck disable=SC2016
lockdown=(unshare -m bash -c 'mount -t tmpfs none /sys/kernel/security &&
	echo "$1" >/sys/kernel/security/lockdown && shift && exec "$@"' -)
refused=(env LD_PRELOAD="$build/preload/deny.so")
record=("$memprov" record -o "$trace" -- true)
says 1 "$mp the kernel has no BTF (/sys/kernel/btf/vmlinux): boot one with CONFIG_DEBUG_INFO_BTF" \
	"${no_btf[@]}" "${record[@]}"
says 1 "$mp the kernel is locked down (confidentiality), so BPF may not read its memory: boot with lockdown=integrity or none" \
	"${lockdown[@]}" "none integrity [confidentiality]" "${refused[@]}" "${record[@]}"
policy="$mp the kernel refused BPF (Operation not permitted) to a process that has the capabilities: a security policy; see its log, dmesg or ausearch"
says 1 "$policy" "${lockdown[@]}" "none [integrity] confidentiality" "${refused[@]}" "${record[@]}"
says 1 "$policy" "${refused[@]}" "${record[@]}"
# What the file says is no refusal.
expect 0 "lost 0" "${lockdown[@]}" "none integrity [confidentiality]" "${record[@]}"

echo "# options"
expect 2 "$mp --ring 4K: not a size from 64K to 1G" "$memprov" record --ring 4K -o "$trace" -- true
expect 2 "$mp -w soon: not a duration; try 10s or 500ms" "$memprov" record -w soon -o "$trace" -- true
expect 2 "$mp --max-size big: not a size; try 512M" "$memprov" record --max-size big -o "$trace" -- true

echo "# traces"
expect 0 "" "$memprov" record -o "$trace" -- true
rp="memprov: report:"
says 1 "$rp /etc/passwd: not a memprov trace, or damaged: record it again" "$memprov" report /etc/passwd
says 1 "$rp $dir: not a memprov trace, or damaged: record it again" "$memprov" report "$dir"
says 1 "$rp $dir/nosuch: No such file or directory: record one with memprov record -o" \
	"$memprov" report "$dir/nosuch"
python3 - "$trace" "$dir" <<'END'
import struct, sys, zlib
data = bytearray(open(sys.argv[1], "rb").read())
def save(name, data):
    open(f"{sys.argv[2]}/{name}", "wb").write(data)
major, = struct.unpack_from("<H", data, 8)
save("newer", data[:8] + struct.pack("<H", major + 1) + data[10:])
save("swapped", data[:8] + struct.pack(">H", major) + data[10:])
save("cut", data[:-7])
data[len(data) // 2] ^= 255
save("damaged", data)
END
says 1 "$rp $dir/newer: written by another version of memprov: use that one to read it" "$memprov" report "$dir/newer"
says 1 "$rp $dir/swapped: written in the other byte order: no memprov writes that; record it again" \
	"$memprov" report "$dir/swapped"
says 1 "$rp $dir/damaged: not a memprov trace, or damaged: record it again" "$memprov" report "$dir/damaged"
[ ! -s "$dir/out" ] || fail "an error still prints a report"
says 0 "" "$memprov" report "$dir/cut"
grep -q "did not end in order" "$dir/out" || fail "a trace that was cut is not said to be"
chmod 755 "$dir"
says 1 "$rp $trace: Permission denied: a trace is its recorder's alone; use sudo or chown it" \
	setpriv --reuid=65534 --regid=65534 --clear-groups "$memprov" report "$trace"

echo "# columns"
expect 1 "resident" "$memprov" report --by residnet "$trace"
expect 1 "nosuch" "$memprov" report --by nosuch "$trace"
grep -qE "reserved|resident|touched|cold|unique|pss|cow|node0" "$dir/err" ||
	fail "an absent column is not answered with a present one"
[ ! -s "$dir/out" ] || fail "an error still prints a report"
