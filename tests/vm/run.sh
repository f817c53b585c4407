#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The live tests on another kernel, each with its verdict; fails if one does.
# usage: run.sh BUILDDIR KERNEL
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
kernel=$2
at=$build/vm/$kernel

rm -rf "$at"
mkdir -p "$at"
status=0
readarray -t tests < <(grep -v '^#' "$here/tests")
"$here/../../scripts/vm" "$kernel" --build "$build" --out "$at" --timeout 1500 \
	-- bash tests/vm/guest.sh "$(basename "$build")" "${tests[@]}" || status=$?
if [ "$status" != 0 ] && [ -r "$at/verdicts" ]; then
	awk -F'\t' '$2 == "fail" { print $1 }' "$at/verdicts" | while read -r test; do
		[ ! -r "$at/$test.log" ] || {
			echo "== $test"
			tail -n 25 "$at/$test.log"
		}
	done
fi
exit $status
