#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What the shells complete is what the verbs take: options and formats from the sources' own tables.
set -euo pipefail
cd "$(dirname "$0")/../.."
memprov=$(realpath "${1:-build}/memprov")
status=0
bad() {
	echo "FAIL $*"
	status=1
}
sources() {
	case $1 in
	top) echo cmd/top/*.c cmd/target.h ;;
	record) echo cmd/record.c cmd/target.h ;;
	*) echo "cmd/$1.c" ;;
	esac
}
# shellcheck source=scripts/completion/memprov.bash
. scripts/completion/memprov.bash
# shellcheck disable=SC2317 # called by name
in_bash() { # WORD...: what completes the last one
	COMP_WORDS=("$memprov" "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_memprov
	printf '%s\n' "${COMPREPLY[@]}"
}
# shellcheck disable=SC2317
in_zsh() {
	zsh -fc 'compadd() { shift; print -l -- $@ }; _files() { : }
		words=("$@"); CURRENT=$#words; . scripts/completion/_memprov' zsh "$memprov" "$@" |
		awk -v cur="${*: -1}" 'index($0, cur) == 1'
}
shells=(bash)
if command -v zsh >/dev/null; then
	shells+=(zsh)
else
	echo "note: SKIPPED, no zsh"
fi
for shell in "${shells[@]}"; do
	ask() {
		"in_$shell" "$@"
	}
	is() { # WANT WORD...
		local want=$1
		shift
		[ "$(ask "$@" | sort -u | paste -sd' ')" = "$want" ] || bad "$shell: $* gives $(ask "$@" | paste -sd' ')"
	}
	is "diff features help mark record report top" ""
	is "record report" re
	is "fault" report --owner fa
	is "csv folded html json pprof speedscope table" report --format ""
	is "folded json markdown table" diff --format ""
	is "site stack" top --group s
	is "resident" report --by resid
	is "alloc auto fault" diff --owner ""
	for verb in record report top diff mark features; do
		usage=$("$memprov" help $verb)
		# shellcheck disable=SC2046 # words on purpose
		while read -r option; do
			# Long names of short options are in the page alone.
			grep -qE -- "--$option([^a-z-]|\$)" <<<"$usage" || continue
			got=$(ask $verb "--$option")
			grep -qx -- "--$option" <<<"$got" || bad "$shell: $verb lacks --$option: $got"
		done < <(grep -ohE '\{"[a-z-]+", (required|no)_argument' $(sources $verb) | cut -d'"' -f2)
	done
done
[ $status = 0 ] && echo "ok completion in ${shells[*]}"
exit $status
