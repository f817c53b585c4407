#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What memprov says without a capability, and what CMD gets of memprov's: nothing.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

need_bpf
command -v setpriv >/dev/null || skip "needs setpriv"
[ -x /usr/bin/python3 ] || skip "needs a python3 that every user may run"
cd "$dir"
chmod 755 "$dir"
mp="memprov: record:"

# without CAPABILITY...: root that lacks them.
without() {
	local drop
	drop=$(printf ',-%s' "$@")
	echo setpriv --bounding-set="${drop#,}" --inh-caps="${drop#,}"
}
no="memprov: top: no privilege to load BPF programs:"
# Split into words on purpose.
# shellcheck disable=SC2046
says 1 "$no CAP_BPF missing: run as root or grant it" \
	$(without sys_admin bpf) "$memprov" top --batch 1 -- true
# shellcheck disable=SC2046
says 1 "$no CAP_PERFMON missing: run as root or grant it" \
	$(without sys_admin perfmon) "$memprov" top --batch 1 -- true
# shellcheck disable=SC2046
says 1 "$no CAP_BPF, CAP_PERFMON missing: run as root or grant it" \
	$(without sys_admin bpf perfmon) "$memprov" top --batch 1 -- true

# whoami FILE: what CMD sees of itself.
cat >whoami.py <<'END'
import json, os, sys
fds = []
for fd in range(1024):
    try:
        os.fstat(fd)
        fds.append(fd)
    except OSError:
        pass
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
print(json.dumps({"fds": fds, "uid": os.getresuid(), "gid": os.getresgid(), "groups": sorted(os.getgroups()),
                  "home": os.environ.get("HOME"), "user": os.environ.get("USER"),
                  "caps": int(status["CapEff"], 16)}))
END
# saw KEY: of the last record.
saw() {
	python3 -c 'import json, sys; v = json.load(open("seen"))[sys.argv[1]]; print(*v if isinstance(v, list) else [v])' "$1"
}
# as_cmd [ASSIGNMENT...] -- [OPTION...]: CMD under record, with no fd of ours.
as_cmd() {
	local env=()
	while [ "$1" != -- ]; do
		env+=("$1")
		shift
	done
	shift
	python3 -c 'import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode)' \
		env "${env[@]}" "$memprov" record -o "$trace" "$@" -- /usr/bin/python3 whoami.py >seen 2>err ||
		fail "record $*: $(cat err)"
}

as_cmd HOME=/root --
[ "$(saw fds)" = "0 1 2" ] || fail "CMD has fds $(saw fds)"
[ "$(saw uid)" = "0 0 0" ] || fail "CMD of root runs as $(saw uid)"
echo "ok    CMD has the fds 0, 1 and 2, and runs as who called"

user=$(getent passwd | awk -F: '$3 > 0 && $3 < 65536 && $1 != "sync" { print $1 }' | tail -1)
uid=$(id -u "$user") gid=$(id -g "$user") groups=$(id -G "$user" | tr ' ' '\n' | sort -n | xargs)
home=$(getent passwd "$user" | cut -d: -f6)
for how in sudo option; do
	if [ $how = sudo ]; then
		as_cmd SUDO_UID="$uid" SUDO_GID="$gid" HOME=/root --
	else
		as_cmd SUDO_UID=12345 HOME=/root -- --user "$user"
	fi
	[ "$(saw uid)" = "$uid $uid $uid" ] || fail "$how: CMD has uids $(saw uid)"
	[ "$(saw gid)" = "$gid $gid $gid" ] || fail "$how: CMD has gids $(saw gid)"
	[ "$(saw groups)" = "$groups" ] || fail "$how: CMD has groups $(saw groups) and not $groups"
	[ "$(saw home)" = "$home" ] || fail "$how: CMD has HOME $(saw home) and not $home"
	[ "$(saw user)" = "$user" ] || fail "$how: CMD has USER $(saw user)"
	[ "$(saw caps)" = 0 ] || fail "$how: CMD has capabilities $(saw caps)"
	[ "$(saw fds)" = "0 1 2" ] || fail "$how: CMD has fds $(saw fds)"
	echo "ok    $how: CMD runs as $user, with its groups and home and no capability"
done
as_cmd SUDO_UID="$uid" -- --user root
[ "$(saw uid)" = "0 0 0" ] || fail "--user root under sudo: CMD has uids $(saw uid)"
says 1 "$mp --user nosuchuser: no such user: check with getent passwd" \
	"$memprov" record -o "$trace" --user nosuchuser -- true
says 1 "$mp SUDO_UID=54321: no such user, so CMD would run as root: name one with --user" \
	env SUDO_UID=54321 "$memprov" record -o "$trace" -- true
says 1 "$mp --user root: only root may run CMD as another user" \
	setpriv --reuid=65534 --regid=65534 --clear-groups "$memprov" record -o "$dir/nobody" --user root -- true
