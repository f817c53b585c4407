#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# In the guest: runs live tests one by one and leaves a verdict of each in /out.
# usage: guest.sh BUILDDIR TEST... (a word may hold arguments: "walkers direct thp")
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$1
shift

export MEMPROV_TEST_SWAP=1 # the machine is the test's own
uname -r >/out/release
"$build/memprov" features --format json >/out/features.json 2>/out/features.log
features=$?
"$build/memprov" features
failed=$((features != 0))

note() { # TEST VERDICT SECONDS REASON
	printf '%s\t%s\t%s\t%s\n' "$@" >>/out/verdicts
	printf '%-8s %-16s %4s s  %s\n' "$2" "$1" "$3" "$4"
}

for words in "$@"; do
	read -r test arguments <<<"$words"
	SECONDS=0
	# Of a recording with losses there is nothing to judge: on a guest so slow a program of ours is
	# interrupted now and then, and skipped for another task meanwhile.
	for _ in 1 2 3; do
		status=0
		# shellcheck disable=SC2086 # several words
		timeout -k 5 "${VM_TEST_SECONDS:-400}" bash "tests/live/$test.sh" "$build" $arguments \
			>"/out/$test.log" 2>&1 || status=$?
		grep -q "^FAIL: record exits with 3" "/out/$test.log" || break
	done
	case $status in
	0) note "$test" pass $SECONDS "" ;;
	77) note "$test" skip $SECONDS "$(sed -n 's/^skip: *//p' "/out/$test.log" | tail -n 1)" ;;
	*)
		note "$test" fail $SECONDS "$(grep -E '^(FAIL|WRONG|AssertionError)' "/out/$test.log" | tail -n 1)"
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
