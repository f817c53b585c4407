#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# diff across builds of one program: a function inlined, renamed, and its source moved. What is
# expected was written by hand; sizes are what the programs map.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
for name in rebuild rebuild_inlined rebuild_renamed rebuild_moved; do
	start_work ../rebuild/$name
	start_record
	go
	stop_record
	stop_work
	mv "$trace" "$dir/$name"
done
! cmp -s "$build/rebuild/rebuild" "$build/rebuild/rebuild_moved" || fail "the moved one is no other build"

# The rows of the program's own functions.
own() { # NAME OPTION...
	local name=$1
	shift
	"$memprov" diff "$dir/rebuild" "$dir/$name" "$@" | grep -E "table_new|cache_|serve" || true
}
same() { # WHAT WANTED GOT
	[ "$2" = "$3" ] || fail "$1: wanted
$2
got
$3"
	echo "ok    $1"
}

same "nothing changed" "" "$(own rebuild --format markdown)"
same "inlined" "$(
	cat <<'END'
| +800.00 KiB | 800.00 KiB | 1.56 MiB | exact | `call < map_at < cache_fill < serve  (mmap)` |
END
)" "$(own rebuild_inlined --format markdown)"
same "renamed" "$(
	cat <<'END'
| +1.17 MiB | - | 1.17 MiB | new | `call < map_at < cache_load < serve  (mmap)` |
| -800.00 KiB | 800.00 KiB | - | gone | `call < map_at < cache_fill < serve  (mmap)` |
END
)" "$(own rebuild_renamed --format markdown)"
same "moved" "$(
	cat <<'END'
| +2.34 MiB | 800.00 KiB | 3.12 MiB | exact | `call < map_at < cache_fill < serve  (mmap)` |
END
)" "$(own rebuild_moved --format markdown)"

# A differential flame graph has what did not change, too.
same "folded" "$(
	cat <<'END'
;main;serve;cache_fill;map_at;call 819200 3276800
;main;table_new;map_at;call 1228800 1228800
END
)" "$(own rebuild_moved --format folded | sed 's/^.*;main;/;main;/' | sort)"

# Rules, in words for a pull request.
got=0
"$memprov" diff "$dir/rebuild" "$dir/rebuild_moved" --format markdown --fail-on 'live>+1M' --fail-on 'live>+900%' --fail-on 'charged>+1%' >"$dir/out" || got=$?
[ "$got" = 4 ] || fail "a rule that trips: exit $got"
for line in '- **failed**: `live>+1M`: 1.95 MiB to 4.30 MiB' '- passed: `live>+900%`: 1.95 MiB to 4.30 MiB' '- **undecided**: `charged>+1%`: base: no cgroup'; do
	grep -qF -- "$line" "$dir/out" || fail "no line '$line': $(cat "$dir/out")"
done
says 1 "memprov: diff: column grown is not additive: folded stacks cannot show it" \
	"$memprov" diff "$dir/rebuild" "$dir/rebuild_moved" --format folded --by grown
