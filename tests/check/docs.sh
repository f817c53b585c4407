#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Every long option, column and event is in its page.
set -euo pipefail
cd "$(dirname "$0")/../.."
status=0
need() { # PAGE WORD WHAT
	grep -qw -e "$2" <<<"$(sed 's/\\-/-/g' "$1")" || {
		echo "FAIL $3 $2 is not in $1"
		status=1
	}
}
# Where a verb's options stand.
sources() {
	case $1 in
	record) echo cmd/record.c cmd/target.h ;;
	top) echo cmd/top/*.c cmd/target.h ;;
	*) echo "cmd/$1.c" ;;
	esac
}
# As help prints it, and as the page has it.
usage() { # [VERB]
	"${build:-build}/memprov" help "$@" | sed -e '/^usage:$/d' -e '/--version/d'
}
synopsis() { # PAGE
	sed -n '/^\.SH SYNOPSIS/,/^\.fi/p' "$1" | sed -e '/^\.[SHnfi]* *\(SYNOPSIS\)*$/d' -e 's/^\.B //' -e 's/\\-/-/g'
}
build=${1:-build}
for verb in record report top diff mark features; do
	page=man/memprov-$verb.1
	# shellcheck disable=SC2046 # words on purpose
	while read -r opt; do
		# What only other verbs have the same short letter for is said where the targets are.
		need "$page" "--$opt" "option of $verb"
	done < <(grep -ohE '\{"[a-z-]+", (required|no)_argument' $(sources $verb) | cut -d'"' -f2)
	for section in EXAMPLES OVERHEAD CAVEATS "EXIT STATUS"; do
		grep -qx "\.SH $section" "$page" || {
			echo "FAIL $page has no $section"
			status=1
		}
	done
	diff <(usage $verb) <(synopsis "$page") || {
		echo "FAIL memprov help $verb (<) and the SYNOPSIS of $page (>) differ"
		status=1
	}
	need man/memprov.1 "memprov-$verb" page
done
# All pages are installed, and what they refer to is there.
for page in man/*.[1-9]; do
	grep -q "$page" CMakeLists.txt || {
		echo "FAIL $page is not installed"
		status=1
	}
	while read -r name section; do
		[ -e "man/$name.$section" ] || {
			echo "FAIL $page refers to $name($section)"
			status=1
		}
	done < <(sed 's/\\-/-/g' "$page" | sed -n 's/^\.BR "*\(memprov[a-z.-]*\)"* (\([1-9]\)).*/\1 \2/p')
done
for col in $(sed -n 's/^MP_COST([A-Z0-9_]*, *\([a-z0-9-]*\),.*/\1/p' lib/join/cost.def); do
	sed "s/\\\\-/-/g" man/memprov.1 | grep -x "\.B $col" >/dev/null || {
		echo "FAIL column $col has no entry in man/memprov.1"
		status=1
	}
done
for loss in $(sed -n 's/^MP_LOSS([A-Z_]*, *[0-9]*, *\([a-z_0-9]*\),.*/\1/p' bpf/shared/loss.def); do
	need man/memprov-trace.5 "$loss" loss
done
# A loss that costs no event says so in both pages.
for loss in $(sed -n 's/^MP_LOSS([A-Z_]*, *[0-9]*, *\([a-z_0-9]*\), *NAMES,.*/\1/p' bpf/shared/loss.def); do
	need man/memprov-record.1 "$loss" loss
	grep -A1 "^\.B $loss " man/memprov-trace.5 | grep -q "No event was lost\.$" || {
		echo "FAIL loss $loss of no event is not called so in man/memprov-trace.5"
		status=1
	}
done
for event in $(sed -n 's/^MP_EVENT(\([A-Z_]*\),.*/\1/p' bpf/shared/event.def); do
	need man/memprov-trace.5 "$event" event
done
for field in $(sed -n 's/^MP_FIELD([a-z_]*, [us0-9]*, \([a-z_0-9]*\),.*/\1/p' bpf/shared/event.def | sort -u); do
	need man/memprov-trace.5 "$field" field
done
for verb in $(sed -n 's/^\t*{"\([a-z]*\)", cmd_.*/\1/p' cmd/main.c); do
	need man/memprov.1 "$verb" verb
done
# What a recording costs: one set of figures.
while read -r figure; do
	for file in README.md man/memprov-record.1; do
		grep -qF -- "$figure" "$file" || {
			echo "FAIL the cost $figure of cmd/dryrun.c is not in $file"
			status=1
		}
	done
done < <(sed -n 's/^#define COST_[A-Z]* *"\(.*\)"$/\1/p' cmd/dryrun.c)
diff <(usage) <(synopsis man/memprov.1) || {
	echo "FAIL memprov help (<) and the SYNOPSIS (>) differ"
	status=1
}
[ $status = 0 ] && echo "ok docs"
exit $status
