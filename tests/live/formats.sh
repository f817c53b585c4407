#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# One recording in every format, read by what reads that format, against the demo's own count.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
[ -x "$build/demo" ] || fail "no $build/demo: build the demo target"
export TMPDIR=$dir # the demo leaves files when it is killed
start_command "$build/demo" 5
start_record
go
stop_record
stop_work
for format in json csv pprof speedscope html; do
	"$memprov" report "$trace" --format $format -o "$dir/$format" || fail "--format $format exits with $?"
done
PYTHONDONTWRITEBYTECODE=1 python3 "$here/formats.py" "$dir" || fail "a format is wrong"

# The demo's functions in what other programs make of it.
owners() {
	python3 -c 'import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    t = json.loads(line) if line.startswith("{") else {}
    if "owner" in t and "object" not in t:
        print(t["owner"], t["resident"])' "$oracle"
}

if type -P go >/dev/null; then
	command go tool pprof -top -cum -unit=B -nodefraction=0 -nodecount=1000 "$dir/pprof" >"$dir/top" 2>"$dir/err" ||
		fail "go tool pprof: $(cat "$dir/err")"
	grep -qx "Type: resident" "$dir/top" || fail "go tool pprof shows $(grep Type: "$dir/top")"
	while read -r owner bytes; do
		got=$(awk -v f="$owner" '$6 == f { print $4 }' "$dir/top")
		[ "$got" = "${bytes}B" ] || [ "$bytes$got" = "00" ] || fail "go tool pprof: $owner has $got, not $bytes"
	done < <(owners)
	command go tool pprof -top -cum -unit=B -sample_index=reserved -tagfocus=kind=mmap "$dir/pprof" 2>/dev/null | grep -q index_reserve ||
		fail "go tool pprof: no reserved by kind"
	echo "ok    go tool pprof has $(owners | wc -l) owners"
else
	echo "note: SKIPPED, no go: go tool pprof did not read the profile"
fi

if command -v chromium >/dev/null; then
	cp "$dir/html" "$dir/page.html"
	timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$dir/browser" --enable-logging=stderr \
		--virtual-time-budget=5000 --dump-dom "file://$dir/page.html" >"$dir/dom" 2>"$dir/err" || fail "chromium: $(tail -3 "$dir/err")"
	! grep CONSOLE "$dir/err" || fail "the page complains"
	python3 - "$dir/dom" "$dir/json" <<'END' || fail "the page is wrong in a browser"
import html, json, re, sys

dom = html.unescape(open(sys.argv[1], encoding="utf-8").read())
report = json.load(open(sys.argv[2], encoding="utf-8"))
total = f"{report['totals']['resident']['value'] / 1048576:.2f} MiB"
status = re.search(r'<span id="status">([^<]*)', dom).group(1)
assert status == f"resident: {total} in {len(report['rows'])} rows", status
assert re.search(r'title="huge_create: ', dom), "no flame graph"
body = re.search(r'<tbody id="rows">(.*?)</tbody>', dom, re.S).group(1)
assert body.count("<tr") == len(report["rows"]), "rows"
assert dom.count('class="strip"') > 10 and "<circle" in dom, "no map or no timeline"
assert "No event was lost." in dom and re.search(r"<td>resident</td><td>[^<]*</td><td>0 B</td><td>[^<]*</td><td>0 B</td><td>ok</td>", dom), "no law"
END
	echo "ok    a browser shows it"
else
	echo "note: SKIPPED, no chromium: the page was not opened"
fi

# A filter, what is exact, and what functions have with all they called.
while read -r owner bytes; do
	got=$("$memprov" report "$trace" --filter "function = $owner" --group process --format csv --columns resident | awk -F, 'NR > 1 { n += $7 } END { print n + 0 }')
	[ "$got" = "$bytes" ] || fail "--filter function = $owner: $got, not $bytes"
	for column in 2 4; do
		got=$("$memprov" report "$trace" --children --bytes --rows 0 | awk -v f="$owner" -v c=$column '$5 == f { print $c + 0 }')
		[ "${got:-0}" = "$bytes" ] || fail "--children: $owner has $got in field $column, not $bytes"
	done
done < <(owners)
python3 - "$dir/json" <("$memprov" report "$trace" --evidence exact --format json) <<'END' || fail "--evidence exact is wrong"
import json, sys

whole, exact = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:])
of = {r["id"]: r["costs"] for r in exact["rows"]}
assert exact["query"]["evidence"] == "exact" and exact["totals"] == whole["totals"]
for row in whole["rows"]:
    for name, cost in row["costs"].items():
        got, want = of[row["id"]][name], cost and cost.get("exact", 0)
        assert (got["value"] if got else 0) == (want or 0), (row["id"], name, cost, got)
        assert not got or "lo" not in got
END
for view in growth waste pressure numa; do
	"$memprov" report "$trace" --view $view >"$dir/out" || fail "--view $view exits with $?"
	grep -q "OWNER" "$dir/out" || fail "--view $view prints no rows"
done
grep -q "RESIDENT.*NODE0" "$dir/out" || fail "--view numa has no nodes"
[ "$("$memprov" report "$trace" --children --bytes --rows 0 | awk '$5 == "main" { print $1 }')" != "" ] || fail "no percentage"
echo "ok    filter, evidence, views, children"

! "$memprov" report --format nosuch "$trace" 2>"$dir/err" || fail "--format nosuch works"
grep -q "^memprov: report: --format nosuch: table, folded, json, csv, pprof, speedscope or html" "$dir/err" || fail "no list of formats"
says 1 "memprov: report: column grown is not additive: folded stacks cannot show it; use --format table" \
	"$memprov" report --by grown --format folded "$trace"
says 1 "memprov: report: cannot create $dir/no/such: No such file or directory" \
	"$memprov" report --format html -o "$dir/no/such" "$trace"
for format in csv pprof speedscope html; do
	! "$memprov" report "$trace" --format $format >/dev/full 2>/dev/null || fail "--format $format fits on a full disk"
done
for wrong in "--view foo" "--evidence foo" "--filter foo" "--filter resident>" "--children --format csv"; do
	got=0
	# Words on purpose.
	# shellcheck disable=SC2086
	"$memprov" report $wrong "$trace" >/dev/null 2>"$dir/err" || got=$?
	[ "$got" = 2 ] || fail "report $wrong exits with $got: $(cat "$dir/err")"
done
