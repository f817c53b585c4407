#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: runs live tests one by one and leaves a verdict of each in /out. What there is no time
# left for is skipped, and says so: how fast an emulated machine is nobody knows.
# usage: guest.sh BUILDDIR SECONDS TEST... (a word may hold arguments: "walkers direct thp")
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$1 budget=$2
shift 2

export MEMPROV_TEST_SWAP=1 # the machine is the test's own
uname -r >/out/release
"$build/memprov" features --format json >/out/features.json 2>/out/features.log
features=$?
"$build/memprov" features
failed=$((features != 0))
began=$SECONDS

note() { # TEST VERDICT SECONDS REASON
	printf '%s\t%s\t%s\t%s\n' "$@" >>/out/verdicts
	printf '%-8s %-16s %4s s  %s\n' "$2" "$1" "$3" "$4"
}

# One try; status: what it exited with.
try_test() { # TEST [ARGUMENT...]
	status=0
	timeout -k 5 "$left" bash "tests/live/$1.sh" "$build" "${@:2}" >"/out/$1.log" 2>&1 || status=$?
}

for words in "$@"; do
	read -r test arguments <<<"$words"
	start=$SECONDS
	left=$((budget - (start - began)))
	if [ $left -le 0 ]; then
		note "$test" skip 0 "no time left of $budget s"
		continue
	fi
	# Of a recording with losses there is nothing to judge: on a guest so slow a program of ours is
	# interrupted now and then, and skipped for another task meanwhile.
	for _ in 1 2 3; do
		# shellcheck disable=SC2086 # several words
		try_test "$test" $arguments
		grep -q "^FAIL: record exits with 3" "/out/$test.log" || break
	done
	took=$((SECONDS - start))
	case $status in
	0) note "$test" pass $took "" ;;
	77) note "$test" skip $took "$(sed -n 's/^skip: *//p' "/out/$test.log" | tail -n 1)" ;;
	124 | 137)
		if [ $left -lt 200 ]; then
			note "$test" skip $took "not over when the $budget s were"
		else
			note "$test" fail $took "still running after $left s"
			failed=1
		fi
		;;
	*)
		note "$test" fail $took "$(grep -E '^(FAIL|WRONG|AssertionError)' "/out/$test.log" | tail -n 1)"
		failed=1
		;;
	esac
done
dmesg >/out/dmesg
if grep -qE '^\[[^]]*\] (BUG|WARNING|Oops|general protection)' /out/dmesg; then
	note kernel-log fail 0 "$(grep -E '^\[[^]]*\] (BUG|WARNING|Oops|general protection)' /out/dmesg | head -n 1)"
	failed=1
fi
exit $failed
