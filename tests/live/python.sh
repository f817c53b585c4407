#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Functions of Python are frames of a stack: those that the program itself sees, of every CPython
# here whose frames are known. Of one that is not known the report says so.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf

echo "# an interpreter that is none"
run fakepython

seen=0
# judge PYTHON
judge() {
	echo "# $("$1" --version)"
	rm -f "$trace" "$trace.old"
	start_command "$1" "$here/../work/frames.py"
	start_record
	go
	stop_record
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 "$here/python.py" "$report" "$oracle" || fail "the report is wrong"
	stop_work
	seen=$((seen + 1))
}

for name in python3 python3.11 python3.12 python3.13; do
	python=$("$name" -c 'import os, sys
if sys.version_info[:2] in ((3, 11), (3, 12), (3, 13)): print(os.path.realpath(sys.executable))' 2>/dev/null) || continue
	case " ${done_with:-} " in
	*" $python "*) continue ;;
	esac
	[ -z "$python" ] || judge "$python"
	done_with="${done_with:-} $python"
done
[ "$seen" -gt 0 ] || skip "needs a CPython from 3.11 to 3.13"

echo "# grouped by function they are the program's own"
"$memprov" report "$trace" --group function --format json >"$report"
python3 - "$report" <<-'EOF' || fail "the functions are wrong"
	import json, sys
	report = json.load(open(sys.argv[1]))
	names = {r["origin"]["name"] for r in report["rows"]}
	assert not names & {"_PyEval_EvalFrameDefault", "_PyObject_MakeTpCall"}, names
	hooks = [h for h in report["recording"]["hooks"] if h["capability"] == "python"]
	assert len(hooks) == 1 and hooks[0]["provider"].endswith("frames"), hooks
EOF
