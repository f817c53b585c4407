#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Files of the target are read by a child with nothing to lose: one that crashes the reader, holds it
# up or takes it over costs the names of that file and nothing else.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -e "$build/preload/evil.so" ] || fail "no $build/preload/evil.so"

# beside NAME: records a workload of this name and the same workload under a name of good repute.
beside() {
	local other=$1 honest bad line
	mkdir -p "$dir/bin"
	cp "$build/work/pages" "$dir/bin/$other"
	cp "$build/work/pages" "$dir/bin/honest"
	rm -f "$trace" "$trace.old"
	start_command "$dir/bin/$other"
	bad=$pid
	exec {bad_to}>&"$to" {bad_from}<&"$from"
	start_command "$dir/bin/honest" 2>/dev/null
	honest=$pid
	pid=$bad,$honest
	LD_PRELOAD=$build/preload/evil.so start_record
	go
	echo go >&"$bad_to"
	while read -r -t 30 -u "$bad_from" line; do
		[ "$line" != "done" ] || break
	done
	stop_record
	exec {bad_to}>&- {bad_from}<&-
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	stop_work
	stop_work
}

# names PROGRAM: the functions in the stacks of that process.
names() {
	python3 - "$report" "$1" <<'END'
import json, sys
names = set()
for row in json.load(open(sys.argv[1]))["rows"]:
    if row["origin"].get("comm") == sys.argv[2]:
        names |= {f.get("function") for f in row["origin"].get("stack") or []
                  if (f.get("module") or "").endswith("/" + sys.argv[2])}
print(*sorted(str(name) for name in names))
END
}

for name in crash hang; do
	beside $name
	[[ " $(names honest) " == *" page_owner_a "* ]] || fail "$name: the other file lost its names: $(names honest)"
	[ "$(names $name)" = None ] || fail "$name: names from nowhere: $(names $name)"
	grep -qE '^memprov: record: [0-9]+ addresses have no name: reading their file crashed or took too long$' \
		"$dir/record.err" || fail "$name: the loss is not said"
	python3 - "$report" <<'END' || fail "$name: the loss is not in the report"
import json, sys
loss = json.load(open(sys.argv[1]))["recording"]["loss"]
sys.exit(not (loss["causes"]["names_unread"] > 0 and loss["total"] == 0))
END
	echo "ok    $name: $(grep -o '[0-9]* addresses' "$dir/record.err") without a name, all others have theirs"
done
beside escape
[[ " $(names escape) " == *" jail_held "* && "$(names escape)" != *escaped_by* ]] || fail "a parser that was taken over: $(names escape)"
[ ! -e /tmp/memprov-escaped ] || fail "it wrote a file"
echo "ok    escape: nothing to be had"
