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
# A thread is no process: nothing could be followed.
python3 -c 'import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print(threading.enumerate()[1].native_id, flush=True)
time.sleep(60)' >thread &
pids+=("$!")
await test -s thread || fail "no thread"
says 1 "$mp $(cat thread) is a thread of python3 ($!): use -p $!" "$memprov" record -p "$(cat thread)" -o "$trace"
says 1 "memprov: top: $(cat thread) is a thread of python3 ($!): use -p $!" "$memprov" top -p "$!,$(cat thread)" --batch 1
expect 2 "choose one of -p, --comm, --cgroup, -a and a command" "$memprov" record -p 1 -a
expect 2 "choose one of" "$memprov" record -p 1 --comm sh
expect 2 "choose one of" "$memprov" record -p 1 -- true
expect 2 "whose memory?" "$memprov" record -w 1s
says 1 "$mp no process named nosuchcomm: check with ps -e" "$memprov" record --comm nosuchcomm -o "$trace"
says 1 "$mp --cgroup of:x: not a process id behind of:" "$memprov" record --cgroup of:x -o "$trace"
expect 2 "usage" "$memprov" nosuch
[ ! -s "$dir/out" ] || fail "usage after a mistake goes to stdout"

echo "# CMD"
says 127 "$mp /nonexistent: No such file or directory: check the command's path" \
	"$memprov" record -o "$trace" -- /nonexistent
says 126 "$mp /etc/passwd: Permission denied: check the command's path" \
	"$memprov" record -o "$trace" -- /etc/passwd
# What was taken for a command is answered with what was meant.
says 127 "$mp 4711: No such file or directory: did you mean -p 4711?" "$memprov" record -o "$trace" 4711
says 127 "$mp nosuch: No such file or directory: check the command's path; -p behind it would be the command's: options of record come first" \
	"$memprov" record -o "$trace" -w 5 nosuch -p 1
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
expect 2 "$mp --buffer 4K: not a size from 64K to 1G" "$memprov" record --buffer 4K -o "$trace" -- true
expect 2 "$mp -w soon: not a duration; try 10s or 500ms" "$memprov" record -w soon -o "$trace" -- true
expect 2 "$mp --max-size big: not a size; try 512M" "$memprov" record --max-size big -o "$trace" -- true

# verb: reason and the words that are right, on one line before the usage.
wrong() {
	local text=$1
	shift
	expect 2 "$text" "$memprov" "$@"
	sed -n 1p "$dir/err" | grep -qF -- "$text" || fail "$*: the reason does not come first"
	sed -n 2p "$dir/err" | grep -qx usage: || fail "$*: no usage behind the reason"
	[ ! -s "$dir/out" ] || fail "$*: usage after a mistake goes to stdout"
}
wrong "no verb 'nosuch'" nosuch
wrong "report: --owner foo: auto, alloc or fault" report --owner foo
wrong "report: --format yaml: table, folded, json, csv" report --format yaml
wrong "report: --at is of one file" report --at 1s "$trace" "$trace"
wrong "invalid option -- 'Q'" report -Q
for rows in x -5 "" 1.5; do
	wrong "report: --rows $rows: not a number" report --rows "$rows" "$trace"
done
wrong "diff: 1 file: give two" diff "$trace"
wrong "diff: --format yaml: table, json, markdown or folded" diff --format yaml
wrong "mark: one text" mark two words
wrong "features: invalid option -- 'p'" features -p 1
wrong "features: --format yaml: table or json" features --format yaml

echo "# help"
for verb in record report top diff mark features; do
	says 0 "" "$memprov" "$verb" --help
	mv "$dir/out" "$dir/help"
	sed -n 2p "$dir/help" | grep -q "^memprov $verb " || fail "$verb --help does not show its usage"
	says 0 "" "$memprov" help "$verb"
	cmp "$dir/out" "$dir/help" || fail "help $verb is not $verb --help"
	says 0 "" "$memprov" help
	grep -qxF "$(sed -n 2p "$dir/help")" "$dir/out" || fail "help lacks $verb"
done

echo "# traces"
expect 0 "" "$memprov" record -o "$trace" -- sleep 0
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

# The file may come through a pipe; what is none is refused the same.
"$memprov" report "$trace" >"$dir/want"
"$memprov" report - <"$trace" | cmp "$dir/want" - || fail "report - <FILE differs from report FILE"
# A pipe on purpose.
# shellcheck disable=SC2002
cat "$trace" | "$memprov" report - | cmp "$dir/want" - || fail "report - of a pipe differs from report FILE"
says 1 "$rp -: not a memprov trace, or damaged: record it again" "$memprov" report -

echo "# output"
# Pages touched by a command, folded; a class of rows that is not there leaves stdout empty and says so.
says 0 "memprov: report: --by into a pipe or file prints folded stacks; --format table for rows" \
	"$memprov" report --by touched --owner fault "$trace"
grep -qE ';.* [0-9]+$' "$dir/out" || fail "--by into a file prints no folded stacks"
cp "$dir/out" "$dir/want"
says 0 "memprov: report: --by into a pipe or file prints folded stacks; --format table for rows" \
	"$memprov" report --by touched --owner fault -o "$dir/folded" "$trace"
cmp "$dir/want" "$dir/folded" || fail "-o and stdout differ"
expect 0 "nothing was seen in column swapped" "$memprov" report --by swapped "$trace"
[ ! -s "$dir/out" ] || fail "stacks of nothing"
rm -f "$dir/grown"
says 1 "$rp column grown is not additive: folded stacks cannot show it; use --format table" \
	"$memprov" report --by grown -o "$dir/grown" "$trace"
[ ! -e "$dir/grown" ] || fail "an error still makes a file"

echo "# columns"
says 0 "" "$memprov" report --columns help
cut -d" " -f1 "$dir/out" >"$dir/listed"
sed -n 's/^MP_COST([A-Z0-9_]*, *\([a-z0-9-]*\),.*/\1/p' "$here/../../lib/join/cost.def" | diff - "$dir/listed" ||
	fail "--columns help does not list the columns"
"$memprov" report --columns touched,faulted "$trace" >"$dir/want"
"$memprov" report --columns " Touched ,FAULTED" "$trace" >"$dir/out"
cmp "$dir/want" "$dir/out" || fail "case or blanks matter in a column's name"
expect 1 "--columns names none; memprov report --columns help lists all" "$memprov" report --columns "" "$trace"
expect 1 "no column 'residnet': the nearest is resident; memprov report --columns help lists all" \
	"$memprov" report --columns residnet "$trace"
expect 1 "--columns help lists all" "$memprov" diff --by nosuch "$trace" "$trace"
expect 1 "resident" "$memprov" report --by residnet "$trace"
expect 1 "nosuch" "$memprov" report --by nosuch "$trace"
grep -qE "reserved|resident|touched|cold|unique|pss|cow|node0" "$dir/err" ||
	fail "an absent column is not answered with a present one"
[ ! -s "$dir/out" ] || fail "an error still prints a report"
