#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The Debian package: what it needs is named, what it brings works where it is unpacked.
set -euo pipefail
# shellcheck source=tests/live/lib.sh
. "$(dirname "$0")/lib.sh"

command -v dpkg-shlibdeps >/dev/null || skip "needs dpkg-dev"
(cd "$build" && cpack -G DEB -B "$dir/pack" >"$dir/log" 2>&1) || fail "cpack: $(tail -5 "$dir/log")"
package=("$dir"/pack/memprov_*.deb)
[ -e "${package[0]}" ] || fail "no package"
depends=$(dpkg-deb -f "${package[0]}" Depends)
while read -r library; do
	named=
	# Other architectures may have one of this name, too.
	for owner in $({ dpkg -S "*/$library" || true; } 2>/dev/null | sed 's/:.*//' | sort -u); do
		[[ $depends != *"$owner "* ]] || named=$owner
	done
	[ -n "$named" ] || fail "nobody of $depends brings $library"
done < <(readelf -d "$memprov" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p')
dpkg-deb -x "${package[0]}" "$dir/root"
[ "$("$dir/root/usr/bin/memprov" --version)" = "$("$memprov" --version)" ] || fail "it does not run"
for page in "$here"/../../man/*.[1-9]; do
	name=$(basename "$page")
	[ -e "$dir/root/usr/share/man/man${name##*.}/$name" ] || fail "no page $name"
done
for file in share/bash-completion/completions/memprov share/zsh/site-functions/_memprov include/memprov.h \
	share/doc/memprov/copyright lib/libmemprov.so.0; do
	[ -e "$dir/root/usr/$file" ] || fail "no /usr/$file"
done
echo "ok    $(basename "${package[0]}") depends on $depends"
