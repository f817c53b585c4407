# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the live tests share. A test sources this with its BUILDDIR argument,
# starts a workload, records it, and compares the report with the oracle.

build=${1:?usage: $0 BUILDDIR}
build=$(cd "$build" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
memprov=$build/memprov
dir=$(mktemp -d "${TMPDIR:-/tmp}/memprov-live.XXXXXX")
trace=$dir/trace
report=$dir/report.json
oracle=$dir/oracle
pid=
recorder=
swapfile=
pids=()

cleanup() {
	local p
	for p in "${pids[@]}"; do
		kill -CONT "$p" 2>/dev/null || true
		kill "$p" 2>/dev/null || true
	done
	for p in "${pids[@]}"; do
		wait "$p" 2>/dev/null || true
	done
	if [ -n "$swapfile" ]; then
		swapoff "$swapfile" || true
	fi
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
	echo "FAIL: $*" >&2
	[ ! -s "$dir/record.err" ] || sed 's/^/  record: /' "$dir/record.err" >&2
	exit 1
}

skip() {
	echo "skip: $*"
	exit 77
}

# says STATUS LINE CMD...: LINE is all that it prints on stderr; "" nothing.
says() {
	local want=$1 line=$2 got=0
	shift 2
	timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null || got=$?
	[ "$got" = "$want" ] && [ "$(cat "$dir/err")" = "$line" ] || {
		echo "  exit $got, wanted $want; stderr, wanted and got:" >&2
		printf '  %s\n' "$line" >&2
		sed 's/^/  /' "$dir/err" >&2
		fail "$*"
	}
	echo "ok    exit $want: ${line:-nothing to say}"
}

need_bpf() {
	[ "$(id -u)" = 0 ] || skip "needs root"
	[ -r /sys/kernel/btf/vmlinux ] || skip "needs a kernel with BTF"
	PATH=$PATH:/usr/sbin bpftool prog show >/dev/null 2>&1 || skip "needs bpftool and the bpf system call"
}

# Waits up to 30 s for a command to succeed.
await() {
	local i
	for ((i = 0; i < 300; i++)); do
		if "$@"; then
			return 0
		fi
		sleep 0.1
	done
	return 1
}

# Swap space for the test, only where asked for: it is a change of the machine.
want_swap() {
	if [ "$(wc -l </proc/swaps)" -gt 1 ]; then
		return
	fi
	if [ "${MEMPROV_TEST_SWAP:-0}" != 1 ]; then
		echo "note: no swap: MEMPROV_TEST_SWAP=1 adds 64 MiB for the test"
		return
	fi
	dd if=/dev/zero of="$dir/swap" bs=1M count=64 status=none
	chmod 600 "$dir/swap"
	if mkswap -q "$dir/swap" && swapon "$dir/swap" 2>/dev/null; then
		swapfile=$dir/swap
	else
		echo "note: swapon does not work here: running without swap"
	fi
}

drop_zram() {
	swapoff /dev/zram0 2>/dev/null || true
	echo 1 >/sys/block/zram0/reset
}

# Swap in compressed memory, in front of any other.
want_zram() {
	[ -e /sys/block/zram0/disksize ] || skip "needs zram"
	[ "$(cat /sys/block/zram0/disksize)" = 0 ] || skip "zram0 is in use"
	echo "$1" >/sys/block/zram0/disksize
	trap 'cleanup; drop_zram' EXIT
	mkswap -q /dev/zram0
	swapon -p 100 /dev/zram0 || fail "no swap on zram0"
}

# start_command CMD...: a process that speaks "ready PID", "done" on stdout.
start_command() {
	local word
	# shellcheck disable=SC2034
	coproc WORK { exec "$@"; }
	pids+=("$WORK_PID")
	exec {from}<&"${WORK[0]}" {to}>&"${WORK[1]}"
	while read -r -t 30 -u "$from" word pid; do
		[ "$word" != ready ] || return 0
	done
	fail "the workload did not get ready: $*"
}

# record_command [OPTION...] -- CMD...: record starts it; ends when it is told to.
record_command() {
	rm -f "$trace" "$trace.old"
	start_command env --default-signal=INT "$memprov" record -o "$trace" "$@" 2>"$dir/record.err"
	recorder=$WORK_PID
	sleep 2 # frames of code that has just been mapped are found by no table yet
}

# end_command STATUS: record is told to end, and exits so.
end_command() {
	local status=0
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	unset 'pids[-1]'
	exec {from}<&- {to}>&-
	[ "$status" = "$1" ] || fail "record exits with $status, not $1"
}

start_work() {
	[ -x "$build/work/$1" ] || fail "no $build/work/$1: build the work_$1 target"
	start_command "$build/work/$1" "${@:2}"
}

# Sends a line to the workload and keeps what it says up to "done".
go() {
	local line
	: >"$oracle"
	echo go >&"$to"
	while read -r -t 60 -u "$from" line; do
		[ "$line" != "done" ] || return 0
		echo "$line" >>"$oracle"
	done
	fail "the workload did not finish"
}

stop_work() {
	local p=${pids[0]}
	pids=("${pids[@]:1}")
	exec {from}<&- {to}>&-
	kill -CONT "$p" 2>/dev/null || true
	kill "$p" 2>/dev/null || true
	wait "$p" 2>/dev/null || true
}

is_recording() {
	grep -q recording "$dir/record.err" || ! kill -0 "$recorder" 2>/dev/null
}

# start_record [OPTION...]: returns once the hooks are armed.
start_record() {
	: >"$dir/record.err" # what the last one said must not count
	# A background job of a script ignores SIGINT; give the default back.
	env --default-signal=INT "$memprov" record -p "$pid" -o "$trace" "$@" 2>"$dir/record.err" >&2 &
	recorder=$!
	pids+=("$recorder")
	await is_recording || fail "record says nothing for 30 s"
	kill -0 "$recorder" 2>/dev/null || fail "record ended at once"
	! grep -q "reduced mode, pictures only" "$dir/record.err" ||
		skip "$(sed -n 's/.*reduced mode, pictures only: //p' "$dir/record.err")"
}

stop_record() {
	local status=0
	kill -INT "$recorder"
	wait "$recorder" || status=$?
	unset 'pids[-1]'
	[ "$status" = 0 ] || {
		"$memprov" report "$trace" --format json |
			python3 -c 'import json, sys; print(json.load(sys.stdin)["recording"]["loss"])' >&2 || true # report says it too
		fail "record exits with $status"
	}
}

# check [OPTION...]: the report against the oracle and the kernel's own figure.
# shellcheck disable=SC2120 # the tests pass them
check() {
	local rss
	rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 "$here/check.py" "$report" "$oracle" --pid "$pid" --rss "$rss" "$@" ||
		fail "the report is wrong"
}

# run NAME [RECORD-OPTION...]: the usual test of one work program.
run() {
	local name=$1
	shift
	start_work "$name"
	start_record "$@"
	go
	stop_record
	# shellcheck disable=SC2119
	check
	stop_work
}
