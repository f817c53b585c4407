# SPDX-License-Identifier: GPL-2.0-only
# bash completion for memprov. It asks memprov itself, so that it knows what the installed one knows.

# The words that an option takes: those in its verb's usage, else in another verb's.
_memprov_values() { # COMMAND VERB OPTION
	local command=$1 verb=$2 option=$3 found
	case $option in
	--by | -s | --columns)
		"$command" report --columns help 2>/dev/null | cut -d' ' -f1
		return
		;;
	esac
	found=$({ "$command" help "$verb" && "$command" help; } 2>/dev/null |
		grep -oE -- "\[$option [a-z0-9]+(\|[a-z0-9]+)+" | sed -n 1p)
	printf '%s\n' "${found##* }" | tr '|' '\n'
}

_memprov() {
	local command=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words
	if [ "$COMP_CWORD" = 1 ]; then
		words=$("$command" help 2>/dev/null | sed -n 's/^memprov \([a-z]*\) .*/\1/p')
	elif [ "$verb" = help ]; then
		words=$("$command" help 2>/dev/null | sed -n 's/^memprov \([a-z]*\) .*/\1/p')
	elif [[ $cur == -* ]]; then
		words="$("$command" help "$verb" 2>/dev/null | grep -oE -- '--[a-z-]+[a-z]') --help"
	else
		words=$(_memprov_values "$command" "$verb" "${COMP_WORDS[COMP_CWORD - 1]}")
	fi
	# What is none of these is a file, by complete's options below.
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o bashdefault -o default -F _memprov memprov
