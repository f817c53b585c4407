#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Stacks of real programs without frame pointers: under load 99% of the resident bytes have one that
# reaches the start of the program or thread, and what the unwinder makes of stopped threads is what
# eu-stack does, address by address. STACKS=500 compares so many of each program.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
command -v eu-stack >/dev/null || skip "needs eu-stack (elfutils)"
stacks=${STACKS:-12}
sources=$here/../stacks
skipped=()

# have PROGRAM...: all are installed; else the section is skipped, and said to be.
have() {
	local program
	for program; do
		command -v "$program" >/dev/null || {
			echo "note: no $program: its stacks are not tested"
			skipped+=("$program")
			return 1
		}
	done
}

# whole NAME: records $pid while the function load runs.
whole() {
	start_record
	load
	stop_record
	"$memprov" report "$trace" --owner fault --format json >"$report" || fail "report exits with $?"
	python3 "$here/whole.py" "$report" "$1" || fail "$1: stacks are not whole"
	rm -f "$trace" "$trace.old"
}

# like_eu_stack NAME
like_eu_stack() {
	timeout 250 python3 "$sources/compare.py" "$build/stacks/stopped" "$pid" "$stacks" >"$dir/compare" || {
		cat "$dir/compare" >&2
		fail "$1: stacks differ from eu-stack's"
	}
	echo "$1: $(tail -n 1 "$dir/compare")"
}

# background CMD...: $pid; ended by drop.
background() {
	"$@" >/dev/null 2>&1 &
	pid=$!
	pids+=("$pid")
	sleep 0.3
}

drop() {
	local p=$1 q kept=()
	kill -CONT "$p" 2>/dev/null || true
	kill "$p" 2>/dev/null || true
	wait "$p" 2>/dev/null || true
	for q in "${pids[@]}"; do
		[ "$q" = "$p" ] || kept+=("$q")
	done
	pids=("${kept[@]}")
}

# line TEXT: to a program that answers "done".
line() {
	echo "$1" >&"$to"
	local answer
	while read -r -t 60 -u "$from" answer; do
		[ "$answer" != "done" ] || return 0
	done
	fail "no answer"
}

build_one() {
	gcc -O2 -Wall -Wextra -fomit-frame-pointer "$@" || fail "cannot build $*"
}

# Signals, own signal stacks, the vdso, the PLT, odd frames, a library loaded late.
build_one -shared -fPIC -o "$dir/late.so" "$sources/late.c"
build_one -o "$dir/mixed" "$sources/mixed.c"
background "$dir/mixed" "$dir/late.so" late
like_eu_stack mixed
drop "$pid"

# Stripped, and static.
for kind in "-s" "-s -static" "-static-pie -s"; do
	# shellcheck disable=SC2086
	build_one $kind -o "$dir/filler" "$sources/filler.c"
	start_command "$dir/filler"
	load() { line x; }
	whole "filler ($kind)"
	stop_work
	background "$dir/filler" forever
	like_eu_stack "filler ($kind)"
	drop "$pid"
done

# Its C library has neither tables nor frame pointers.
if have musl-gcc; then
	for strip in "" "-s"; do
		# shellcheck disable=SC2086
		musl-gcc -O2 -static $strip -o "$dir/filler" "$sources/filler.c"
		start_command "$dir/filler"
		load() { line x; }
		whole "filler (musl, static $strip)"
		stop_work
	done
fi

if have redis-server redis-benchmark; then
	port=$((20000 + RANDOM % 20000))
	background redis-server --port "$port" --save "" --appendonly no --dir "$dir"
	load() { redis-benchmark -p "$port" -t set,lpush,hset,zadd -r 100000 -d 200 -n 30000 -q >/dev/null; }
	whole redis-server
	server=$pid
	background bash -c "while :; do redis-benchmark -p $port -t set,lpush,hset,sort -n 100000 -q; done"
	client=$pid pid=$server
	like_eu_stack redis-server
	drop "$client"
	drop "$server"
fi

if have /usr/bin/python3; then
	start_command /usr/bin/python3 -u -c '
import json, os, random, re, sqlite3, sys, threading
print("ready", os.getpid())
def work():
    d = [{"a": random.random(), "b": "x" * i} for i in range(1500)]
    s = json.dumps(d)
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a, b)")
    db.executemany("insert into t values(?, ?)", [(x["a"], x["b"]) for x in json.loads(s)])
    re.findall("(x+)y?", s)
    return d, s, db, [bytes(1000) for i in range(5000)]
sys.stdin.readline()
kept = work()
print("done")
sys.stdin.readline()
print("done")
def forever():
    while True: work()
for i in range(3): threading.Thread(target=forever, daemon=True).start()
forever()'
	load() { line x; }
	whole python3
	line x
	like_eu_stack python3
	stop_work
fi

if have sqlite3; then
	start_command bash -c 'echo ready $$; exec sqlite3 :memory:'
	load() { line "create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 100000)
		insert into t select x, hex(randomblob(20)) from c; create index i on t(b); select 'done';"; }
	whole sqlite3
	echo "select count(*) from t x, t y where x.b < y.b;" >&"$to"
	like_eu_stack sqlite3
	stop_work
fi

if have nginx curl; then
	port=$((20000 + RANDOM % 20000))
	dd if=/dev/zero of="$dir/big" bs=1M count=4 status=none
	cat >"$dir/nginx.conf" <<-CONF
		daemon off; master_process off; error_log /dev/null; pid $dir/nginx.pid; events {}
		http { access_log off; gzip on; gzip_min_length 1; gzip_types *; large_client_header_buffers 64 1m;
		proxy_temp_path $dir/p; client_body_temp_path $dir/b; fastcgi_temp_path $dir/f; uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;
		server { listen 127.0.0.1:$port; root $dir; autoindex on; client_max_body_size 0; client_body_buffer_size 8m;
		location /post { proxy_pass http://127.0.0.1:$port/big; } } }
	CONF
	chmod 755 "$dir"
	background nginx -c "$dir/nginx.conf"
	load() { for _ in 1 2 3 4; do curl -sS -m 20 --compressed --data-binary "@$dir/big" "http://127.0.0.1:$port/post" >"$dir/answer"; done; }
	whole nginx
	server=$pid
	background bash -c "while :; do curl -s --compressed http://127.0.0.1:$port/big >/dev/null; done"
	client=$pid pid=$server
	like_eu_stack nginx
	drop "$client"
	drop "$server"
fi

# Rust.
if have rg; then
	mkfifo "$dir/haystack"
	background bash -c "exec rg -a -U 'foo(?s:.*)zzzqqq' - <'$dir/haystack'"
	exec {hay}>"$dir/haystack"
	load() { cat "$memprov" "$memprov" "$memprov" "$memprov" >&"$hay"; }
	whole rg
	exec {hay}>&-
	drop "$pid"
	background bash -c "while cat '$memprov'; do :; done | rg -a -c '(foo|bar)\w+\d+x'"
	shell=$pid
	pid=$(pgrep -P "$shell" -x rg)
	like_eu_stack rg
	kill "$pid" # and with it the shell, which has nobody to write to
	drop "$shell"
fi

# Go, stripped: by frame pointers. What lies on top of its stacks must not make each a stack of its own.
if have fzf; then
	mkfifo "$dir/lines"
	background bash -c "exec fzf --filter nothingofthatkind <'$dir/lines'"
	exec {hay}>"$dir/lines"
	load() { seq 1 2000000 >&"$hay"; }
	whole fzf
	python3 -c 'import json, sys; sys.exit(json.load(open(sys.argv[1]))["recording"]["stacks"]["total"] > 2000)' "$report" ||
		fail "fzf: more stacks than it can have"
	exec {hay}>&-
	drop "$pid"
	background bash -c "while seq 1 20000; do sleep 0.2; done >'$dir/lines'"
	feeder=$pid
	background bash -c "exec fzf --filter nothingofthatkind <'$dir/lines'"
	like_eu_stack fzf
	drop "$pid"
	drop "$feeder"
fi

# Code made at run time, with a perf map.
if have node; then
	start_command env -C "$dir" node --perf-basic-prof -e '
console.log("ready", process.pid);
process.stdin.on("data", () => {
	const a = [];
	for (let i = 0; i < 100000; i++) a.push({x: Math.random(), s: "y" + i});
	global.b = Buffer.alloc(1 << 24, 1);
	global.a = JSON.parse(JSON.stringify(a));
	console.log("done");
	const deep = (n) => n ? deep(n - 1) + 1 : JSON.stringify(a.slice(0, 99)).length;
	if (!global.timer) global.timer = setInterval(() => deep(9), 0);
});'
	load() { line x; }
	whole node
	like_eu_stack node
	rm -f "/tmp/perf-$pid.map"
	stop_work
fi

[ ${#skipped[@]} = 0 ] || echo "skipped: ${skipped[*]}"
