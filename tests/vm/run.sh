#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The live tests on another kernel, each with its verdict; fails if one does.
# usage: run.sh BUILDDIR KERNEL quick|all
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
kernel=$2 which=$3
at=$build/vm/$kernel
budget=300
[ "$which" = quick ] || budget=900

rm -rf "$at"
mkdir -p "$at"
status=0
readarray -t tests < <(sed -n "s/^quick //p; $([ "$which" = quick ] || echo 's/^all //p')" "$here/tests")
"$here/../../scripts/vm" "$kernel" --build "$build" --out "$at" --timeout $((budget + 300)) \
	-- bash tests/vm/guest.sh "$(basename "$build")" $budget "${tests[@]}" || status=$?
if [ "$status" != 0 ] && [ -r "$at/verdicts" ]; then
	awk -F'\t' '$2 == "fail" { print $1 }' "$at/verdicts" | while read -r test; do
		[ ! -r "$at/$test.log" ] || {
			echo "== $test"
			tail -n 25 "$at/$test.log"
		}
	done
fi
exit $status
