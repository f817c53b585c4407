#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The rows of a standing process add up to its Rss, whatever it runs.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

# judge NAME: records the workload while it works, then stops it for the check.
judge() {
	echo "# $1"
	rm -f "$trace" "$trace.old"
	start_record
	if [ "$1" != redis ]; then
		go
	else
		redis-benchmark -q -s "$dir/redis.sock" -n 20000 -r 5000 -d 900 -t set,lpush >/dev/null
	fi
	kill -STOP "$pid"
	stop_record
	: >"$oracle"
	check_residual
	kill -CONT "$pid"
}

check_residual() {
	local rss
	rss=$(awk '$1 == "Rss:" { print $2 * 1024 }' "/proc/$pid/smaps_rollup")
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 "$here/check.py" "$report" --rss "$rss" || fail "the rows do not add up"
}

for work in "$build/work"/*; do
	if [ ! -f "$work" ] || [ ! -x "$work" ]; then
		continue
	fi
	# The leader of noleader exits: /proc/PID is empty, live.noleader reads a thread's. What compat,
	# halfmove and unfinished do is a loss by design, of which each has a test.
	case $(basename "$work") in
	noleader | compat | halfmove | unfinished) continue ;;
	esac
	start_work "$(basename "$work")"
	judge "$(basename "$work")"
	stop_work
done

# The shell's own variables are expanded by the shell under test.
# shellcheck disable=SC2016
start_command bash -c 'echo "ready $$"; read -r _
	for ((i = 0; i < 20000; i++)); do a[i]=$i.$i.$i; done
	echo done; read -r _'
judge bash
stop_work

start_command python3 -uc 'import os
print("ready", os.getpid())
input()
keep = [bytes(997) * (i % 13) for i in range(5000)]
del keep[::3]
print("done")
input()'
judge python3
stop_work

if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	mkdir "$dir/redis"
	redis-server --port 0 --unixsocket "$dir/redis.sock" --dir "$dir/redis" --save "" \
		--daemonize no >"$dir/redis.log" &
	pid=$!
	pids+=("$pid")
	await test -S "$dir/redis.sock" || fail "redis-server does not start"
	judge redis
else
	echo "note: no redis-server: not judged"
fi
