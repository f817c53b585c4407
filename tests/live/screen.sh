#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The screen of top in a terminal of 80x24 and of 120x40: its rows show what a growing workload says
# it holds, and every key does what the help says.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
export XDG_CONFIG_HOME=$dir/config
command -v tmux >/dev/null || skip "SKIPPED, no tmux: the screen of top is not tested"
cd "$dir" # dumps go here

term() {
	tmux -S "$dir/tmux" -f /dev/null "$@"
}
end_term() {
	term kill-server 2>/dev/null || true
	cleanup
}
trap end_term EXIT

# open COLUMNS LINES ENV TOP-OPTION...: top on a terminal; its exit status goes to $dir/status.
open() {
	local size=(-x "$1" -y "$2") env=$3
	shift 3
	rm -f "$dir/status"
	# shellcheck disable=SC2086
	term new-session -d "${size[@]}" -s top "env $env $(printf '%q ' "$memprov" top "$@") 2>'$dir/record.err'; echo \$? >'$dir/status'; sleep 600"
}
close() { # STATUS
	await test -s "$dir/status" || fail "top does not end"
	[ "$(cat "$dir/status")" = "$1" ] || fail "top exits with $(cat "$dir/status") instead of $1"
	term capture-pane -p -t top >"$dir/screen"
	term kill-server
}
screen() {
	term capture-pane -p -t top >"$dir/screen"
	cat "$dir/screen"
}
press() {
	term send-keys -t top "$@"
}
# shows TEXT: within 30 s.
on_screen() {
	screen | grep -qE -- "$1"
}
shows() {
	await on_screen "$1" || {
		screen >&2
		fail "the screen does not show $1"
	}
}
lacks() {
	! on_screen "$1" || {
		screen >&2
		fail "the screen shows $1"
	}
}
held() {
	python3 -c 'import json, sys
print(json.loads(open(sys.argv[1], encoding="utf-8").readlines()[-1])["resident"])' "$oracle"
}

for size in "80 24" "120 40"; do
	start_work grow
	# shellcheck disable=SC2086
	open $size LC_ALL=C.UTF-8 -p "$pid" -d 0.3 --bytes
	shows "residual|waiting"
	for _ in 1 2 3; do
		go
		shows "^ *$(held) .*grow_step|$(held) .*< grow_s"
	done
	shows "lost 0 events"
	shows "Rss [0-9]+"
	shows "RESIDENT\*"
	echo "ok    $size: three steps"

	# Sorting, by place, by number and by name.
	press Right
	shows "GROWN\*"
	sleep 1 # tables later the columns are where they were
	shows "RESIDENT .*GROWN\*"
	press 1
	shows "RESIDENT\*"
	press s
	press -l "faults"
	press Enter
	shows "FAULTS\*"
	press s
	press -l "nosuch"
	press Enter
	shows "no column 'nosuch'"
	press v
	shows "view: growth.*"
	shows "GROWN\*.*RESIDENT"
	press v v v
	shows "NODE0"
	press v
	shows "view: usual"

	# Columns of one's own, for the next time, too.
	press c
	press -l "thp,faults,nosuch"
	press Enter
	shows "no column 'nosuch'"
	[ ! -e "$XDG_CONFIG_HOME/memprov/top-columns" ] || fail "a mistake is remembered"
	press c
	press -l "resident,thp"
	press Enter
	shows "RESIDENT\*? +THP"
	[ "$(cat "$XDG_CONFIG_HOME/memprov/top-columns")" = "resident,thp" ] || fail "the columns are not remembered"
	press c Enter
	shows "RESIDENT\* +GROWN"
	[ ! -e "$XDG_CONFIG_HOME/memprov/top-columns" ] || fail "the columns are not forgotten"
	shows " TOTAL"

	# A filter, and a wrong one.
	press f
	press -l "kind = stack"
	press Enter
	shows "only rows with kind = stack"
	shows "\[stack\]"
	lacks "grow_step|< grow_s"
	press f C-u
	press -l "kind < 3"
	press Enter
	shows "kind is text"
	press f C-u Enter
	shows "grow_s"

	# One row: the workload's is what it was found by.
	press f
	press -l "function = grow_step"
	press Enter
	shows "only rows with function = grow_step"
	press Home d
	shows "is resident: mapped by this stack"
	[ "$size" = "80 24" ] || shows "at grow_step"
	press d f C-u Enter
	shows "\[stack\]"

	press g g
	shows "group: function"
	shows "grow_step  \(mmap\)"
	press g g g
	shows "group: process"
	shows "grow \($pid\)"
	press g g
	shows "group: resource"
	press g
	shows "group: stack"

	press p
	shows "PAUSED"
	before=$(held)
	go
	sleep 1
	lacks "^ *$(held) "
	shows "^ *$before "
	press p
	shows "^ *$(held) "

	press m
	press -l "deploy v2"
	press Enter
	shows "mark at [0-9.]+ s: deploy v2"
	press w
	shows "wrote memprov-top-"
	[ "$(stat -c %a memprov-top-*.txt)" = 600 ] || fail "the dump is $(ls -l memprov-top-*)"
	grep -q "^ *$(held) .*grow_step" memprov-top-*.txt || fail "the dump lacks the rows: $(cat memprov-top-*.txt)"
	rm memprov-top-*.txt
	press h
	shows "next grouping"
	press h z
	shows "no such key"
	echo "ok    $size: keys"

	# Another size, and back.
	term resize-window -t top -x 60 -y 16
	shows "OWNER"
	[ "$(screen | wc -l)" -le 16 ] || fail "it is higher than the terminal"
	term resize-window -t top -x 20 -y 5
	sleep 0.5
	term resize-window -t top -x 100 -y 30
	shows "OWNER"
	press Home
	shows "h help"

	press q
	close 0
	kill -0 "$pid" || fail "the target is gone"
	[ ! -s "$dir/record.err" ] || fail "top says something"
	echo "ok    $size: resized, left"

	# Without UTF-8 and colours, until the target ends.
	# shellcheck disable=SC2086
	open $size "LC_ALL=C NO_COLOR=1" -p "$pid" -d 0.3
	shows "OWNER"
	shows "\(stack\)"
	! LC_ALL=C grep -q '[^ -~]' "$dir/screen" || fail "more than ASCII: $(cat "$dir/screen")"
	stop_work
	shows "the targets have ended"
	shows "\(stack\)"
	press q
	close 0
	echo "ok    $size: ASCII, end of the target"
done

# A recorded trace.
start_work grow
start_record
go
stop_record
stop_work
open 80 24 LC_ALL=C.UTF-8 -i "$trace" --bytes
shows "^ *$(held) .*grow_s"
press g g
shows "group: function"
press m x Enter
shows "a recording of the past"
press C-c
close 0
# A terminal that cannot be drawn on.
open 80 24 TERM=dumbest -i "$trace"
close 0
grep -q "touched is a lower bound" "$dir/screen" || fail "no table on a terminal that cannot be drawn on: $(cat "$dir/screen")"
echo "ok    -i"

# CMD's own status.
open 80 24 LC_ALL=C.UTF-8 -d 0.2 -- sh -c "sleep 1; exit 7"
shows "the targets have ended"
press q
close 7
echo "ok    CMD's status"
