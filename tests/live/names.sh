#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Names come from the file that was mapped: not from one that took its name, not from one that a link
# in the target's own root points to outside of it, and damaged files cost nothing but names.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
command -v objcopy >/dev/null || skip "needs objcopy"

# owners: the functions in stacks through files called app.
owners() {
	"$memprov" report "$trace" --format json >"$report" || fail "report exits with $?"
	python3 - "$report" <<'END'
import json, sys
names = set()
for row in json.load(open(sys.argv[1]))["rows"]:
    names |= {f.get("function") for f in row["origin"].get("stack") or []
              if (f.get("module") or "").split(" ")[0].endswith("/app")}
print(*sorted(str(name) for name in names))
END
}

record_app() {
	rm -f "$trace" "$trace.old"
	start_record
	go
	stop_record
	names=" $(owners) "
	stop_work
}

# decoy FILE: the same bytes, but its function has another name.
decoy() {
	sed 's/page_owner_a/page_owner_b/g' "$1"
}

app=$dir/bin/app
mkdir "$dir/bin"
cp "$build/work/pages" "$app"
start_command "$app"
decoy "$app" >"$app.new"
chmod +x "$app.new"
mv "$app.new" "$app"
record_app
[[ $names == *" page_owner_a "* && $names != *page_owner_b* ]] || fail "a replaced file: $names"
echo "ok    replaced while it runs: the names of the file that is mapped"

start_command "$build/work/pages"
mv "$app" "$app.decoy"
cp "$build/work/pages" "$app"
stop_work
start_command "$app"
rm -f "$trace" "$trace.old"
start_record
go
mv "$app.decoy" "$app"
kill -KILL "$pid"
wait "$recorder" || fail "record exits with $?"
unset 'pids[-1]'
names=" $(owners) "
stop_work
[[ $names != *page_owner_b* ]] || fail "a replaced file of an exited process: $names"
echo "ok    replaced, process gone: no names of the new file"

# A container: its own root, a stripped program, debug information behind a link.
root=$dir/root
mkdir -p "$root/old" "$root/usr/lib/debug/.build-id" "$root$dir"
cp "$build/work/pages" "$root/app"
for lib in $(ldd "$build/work/pages" | grep -o '/[^ ]*'); do
	mkdir -p "$root$(dirname "$lib")"
	cp -L "$lib" "$root$lib"
done
id=$(readelf -n "$root/app" | awk '/Build ID/ { print $3 }')
objcopy --only-keep-debug "$root/app" "$dir/app.debug"
strip "$root/app"
chmod -R go+rX "$root"
mkdir "$root/usr/lib/debug/.build-id/${id:0:2}"
link=$root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug

in_container() {
	# The inner shell expands them.
	# shellcheck disable=SC2016
	start_command unshare -m bash -c 'mount --bind "$1" "$1" && cd "$1" && pivot_root . old && exec /app' - "$root"
}
for to in "$dir/debug" "../../../../../../../../../../..$dir/debug"; do
	decoy "$dir/app.debug" >"$dir/debug"
	chmod 755 "$dir" && chmod 644 "$dir/debug"
	ln -sf "$to" "$link"
	cp "$dir/app.debug" "$root$dir/debug"
	in_container
	record_app
	[[ $names == *" page_owner_a "* && $names != *page_owner_b* ]] || fail "a link out of the root, -> $to: $names"
	rm "$root$dir/debug"
	in_container
	record_app
	[[ $names != *page_owner* ]] || fail "a link out of the root to nothing, -> $to: $names"
done
echo "ok    links resolve inside the root of the target"

# Section headers and contents shot to pieces, which the kernel does not look at.
bad=() speak=() hear=()
for seed in 1 2 3 4 5 6 7 8; do
	mkdir "$dir/bin/$seed"
	python3 - "$build/work/pages" "$dir/bin/$seed/app" "$seed" <<'END'
import random, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
seed = int(sys.argv[3])
rng = random.Random(seed)
shoff, = struct.unpack_from("<Q", data, 40)
size, count = struct.unpack_from("<HH", data, 58)
loaded = max(struct.unpack_from("<QQQQ", data, 64 + 56 * i + 8)[0] + struct.unpack_from("<Q", data, 64 + 56 * i + 32)[0]
             for i in range(struct.unpack_from("<H", data, 56)[0]) if struct.unpack_from("<I", data, 64 + 56 * i)[0] == 1)
for _ in range(4 << seed):
    at = rng.randrange(shoff, shoff + size * count) if seed < 5 else rng.randrange(loaded, len(data))
    data[at] = rng.randrange(256)
open(sys.argv[2], "wb").write(data)
END
	chmod +x "$dir/bin/$seed/app"
	start_command "$dir/bin/$seed/app" 2>/dev/null
	bad+=("$pid")
	speak+=("$to")
	hear+=("$from")
done
pid=$(
	IFS=,
	echo "${bad[*]}"
)
rm -f "$trace" "$trace.old"
start_record
for i in "${!bad[@]}"; do
	echo go >&"${speak[i]}"
	while read -r -t 30 -u "${hear[i]}" line && [ "$line" != "done" ]; do :; done
done
stop_record
"$memprov" report "$trace" >"$dir/out" || fail "report exits with $?"
echo "ok    eight damaged files: a recording all the same"
