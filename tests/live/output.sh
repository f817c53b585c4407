#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The file a recording goes to: nobody else's to read, never through a link, never one that another
# recorder writes or that is no trace, and readable up to the block where the disk was full.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
cd "$dir"
mp="memprov: record:"
record() {
	"$memprov" record -o "$1" -- true 2>>log
}

(umask 0 && record "$trace")
[ "$(stat -c %a "$trace")" = 600 ] || fail "mode $(stat -c %a "$trace") instead of 600"
first=$(sha256sum <"$trace")
record "$trace"
[ "$(sha256sum <"$trace.old")" = "$first" ] || fail "the former trace is not in $trace.old"
echo "ok    mode 600, the former one is kept"

# A command that is not there, or a target, costs nobody a good trace.
sha256sum "$trace" "$trace.old" >before
for command in nosuch 4711 "-w 5 s -p 1" /etc/passwd "-p 999999999" "-p 2" "--max-size 1 true"; do
	# Words on purpose.
	# shellcheck disable=SC2086
	! "$memprov" record -o "$trace" $command 2>>log || fail "record $command starts"
	sha256sum --quiet -c before || fail "record $command costs a trace"
	[ "$(echo "$trace"*)" = "$trace $trace.old" ] || fail "record $command leaves $(echo "$trace"*)"
done
echo "ok    what cannot start leaves all as it was"

# One process has one line in the header, under the name of what it became.
"$memprov" record -o "$dir/exec" -w 500ms -- sh -c 'exec sleep 5' 2>>log
"$memprov" report --format json exec >exec.json
python3 -c 'import json, sys
targets = json.load(open("exec.json"))["recording"]["targets"]
assert [t["comm"] for t in targets] == ["sleep"], targets' || fail "the targets of one command"
sleep 30 &
pids+=("$!")
sleep 30 &
pids+=("$!")
"$memprov" record -o "$dir/two" -w 100ms -p "${pids[0]},${pids[1]}" 2>err
grep -qF "memprov: recording 2 processes to $dir/two;" err || fail "two processes are announced as $(head -1 err)"
"$memprov" record -o "$dir/two" -w 100ms -p "${pids[0]}" 2>err
grep -qF "memprov: recording sleep (${pids[0]}) to $dir/two;" err || fail "one process is announced as $(head -1 err)"
"$memprov" record --dry-run -o "$dir/dry" -p "${pids[0]},${pids[1]}" >out 2>err
grep -q "^2 processes: [0-9.]* MiB resident now" out || fail "--dry-run: $(cat out err)"
[ ! -e "$dir/dry" ] || fail "--dry-run records"
for p in "${pids[@]}"; do
	kill "$p"
done
pids=()
echo "ok    who is recorded is named once"

echo precious >"$dir/precious"
for name in link dangling; do
	ln -s "$dir/precious$([ $name = link ] || echo .not)" "$dir/$name"
	says 1 "$mp $dir/$name: is a symbolic link: name the file itself with -o" \
		"$memprov" record -o "$dir/$name" -- true
	[ -L "$dir/$name" ] || fail "the link is gone"
done
[ ! -e "$dir/precious.not" ] || fail "a link was followed"
says 1 "$mp $dir/precious: exists and is not a memprov trace: remove it or name another with -o" \
	"$memprov" record -o "$dir/precious" -- true
[ "$(cat precious)" = precious ] || fail "somebody's file was moved away"
mkfifo "$dir/fifo"
says 1 "$mp $dir/fifo: is not a regular file: name another with -o" "$memprov" record -o "$dir/fifo" -- true
says 1 "$mp $dir/no/such: cannot be created there: name a file in a folder you may write to with -o" \
	"$memprov" record -o "$dir/no/such" -- true

start_work pages
start_record
go
says 1 "$mp $trace: another memprov is writing to it: name another file with -o" \
	"$memprov" record -o "$trace" -- true
stop_record
check
stop_work
record "$trace"
echo "ok    the lock ends with its recorder"

# Of ten at once one has the name, or several do one after the other: no trace is lost or mixed.
racers=()
rm -f "$trace" "$trace.old"
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"$memprov" record -o "$trace" -w 2s -- sleep 60 >>log 2>&1 &
	racers+=("$!")
done
won=0
for p in "${racers[@]}"; do
	! wait "$p" || won=$((won + 1))
done
[ "$won" = 1 ] || fail "$won of ten recorders at once believe they have the file"
"$memprov" report "$trace" >/dev/null || fail "the winner's trace cannot be read"
[ ! -e "$trace.old" ] || fail "a living recorder's file was moved away"
echo "ok    ten at once: one has it"

# 256 KiB of disk.
# The inner shell expands its arguments.
# shellcheck disable=SC2016
says 1 "$mp $dir/small/trace: no space left: the trace ends here and is readable; free some or name a file elsewhere with -o" \
	unshare -m bash -c 'mkdir "$2/small" && mount -t tmpfs -o size=256k none "$2/small" || exit 99
		"$1" record -o "$2/small/trace" -- "$3" 2>"$2/log"
		status=$?
		grep -v "memprov: recording" "$2/log" >&2
		cp "$2/small/trace" "$2/full"
		exit $status' - "$memprov" "$dir" "$build/bench/faultloop"
[ "$(stat -c %s full)" -gt 100000 ] || fail "the full disk holds $(stat -c %s full) bytes of trace"
"$memprov" report full >out || fail "the trace of a full disk cannot be read"
grep -q "did not end in order" out || fail "a trace of a full disk passes for a whole one"
# shellcheck disable=SC2016
says 1 "$mp $dir/small/trace: no space left: free some or name a file elsewhere with -o" \
	unshare -m bash -c 'mount -t tmpfs -o size=4k none "$2/small" && head -c 4096 /dev/zero >"$2/small/fill"
		exec "$1" record -o "$2/small/trace" -- true' - "$memprov" "$dir"
