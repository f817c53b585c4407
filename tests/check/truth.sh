#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The judge and the judged share nothing: no header, no object, no language.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
bad() {
	echo "FAIL $*"
	status=1
}
for file in tests/truth/*; do
	case $file in
	*.c) bad "$file is in the language of lib/" ;;
	*.h | *.cpp)
		while read -r target; do
			[ -e "tests/truth/$target" ] || bad "$file includes $target"
		done < <(sed -n 's/^#include "\([^"]*\)"/\1/p' "$file")
		;;
	*.py)
		while read -r module; do
			[ -e "tests/truth/$module.py" ] || python3 -c '
import sys
sys.exit(sys.argv[1] not in sys.stdlib_module_names)' "$module" || bad "$file imports $module"
		done < <(sed -nE 's/^(import|from) ([a-z_]+).*/\2/p' "$file")
		;;
	esac
done
! grep -nE 'lib/|bpf/' tests/truth/*.h tests/truth/*.cpp | grep -v 'Shares nothing with lib/' ||
	bad "the scenarios name a file of the profiler"
! nm -C "$1/truth/scenarios" | grep -E ' (mp_|trace_|ledger_|session_|join_)' ||
	bad "the scenarios hold symbols of the profiler"
[ $status = 0 ] && echo "ok truth"
exit $status
