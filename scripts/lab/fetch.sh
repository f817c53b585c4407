# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the lab boots: a packaged kernel and its modules from the distribution's archive, and a small
# userland of the packages this machine has. All of it is kept in $cache; nothing is installed.

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${XDG_CACHE_HOME:-}" ] && [ -w /var/cache ]; then
	XDG_CACHE_HOME=/var/cache
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/memprov
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
recheck_minutes=1440 # how long the newest package found stays the newest
PATH=$PATH:/usr/sbin:/sbin

# What the guest boots with; of these the ones a kernel has built in are no modules.
modules=(virtio_pci virtio_blk ext4 zram lzo-rle lz4)

# What live tests call.
tools=(base-files base-passwd bash bpftool busybox-static coreutils dash diffutils findutils grep kmod mawk
	mount procps python3 redis-server sed tar util-linux zstd)

# Nothing to boot here: not a failure of what is tested.
unavailable() {
	echo "skip: $*"
	exit 77
}

kernel_row() { # KEY: its row, or nothing
	awk -v key="$1" '$1 == key' "$lab/kernels"
}

kernel_keys() {
	awk '/^[^#]/ { print $1 }' "$lab/kernels"
}

# The machine's own mirror of an archive.
archive_uri() { # debian|debian-security
	{ cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
		sed -nE "s@^[^#]*((https?|file):[^ ]*/$1)/?( .*)?\$@\\1@p" | head -n 1
}

apt_private() { # FOLDER COMMAND...: apt that knows of one suite and touches nothing of the machine
	local at=$1
	shift
	"$1" -q -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$at/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$at/lists" \
		-o Dir::Cache="$at" "${@:2}"
}

# newest FOLDER PATTERN...: names of the newest package of each pattern
newest() {
	local at=$1 pattern name
	for pattern in "${@:2}"; do
		name=$(apt_private "$at" apt-cache search --names-only "$pattern" | cut -d' ' -f1 |
			sort -V | tail -n 1)
		[ -n "$name" ] || return 1
		echo "$name"
	done
}

# Modules in the order they are loaded in, unpacked, and busybox: the first part of an initrd.
pack_modules() { # UNPACKED OUT
	local base=$1 out=$2 root version module line path name
	[ -d "$base/lib/modules" ] || base=$base/usr
	version=$(ls "$base/lib/modules")
	depmod -b "$base" "$version" 2>/dev/null # tells of lists that need not be there
	root=$(mktemp -d)
	mkdir -p "$root/bin" "$root/modules"
	cp "$(command -v busybox)" "$root/bin/busybox"
	for module in "${modules[@]}"; do
		modprobe -d "$base" -S "$version" --show-depends "$module" 2>/dev/null || true
	done | while read -r line path _; do
		[ "$line" = insmod ] || continue
		name=$(basename "$path" | sed 's/\.\(xz\|zst\)$//')
		[ ! -e "$root/modules/$name" ] || continue
		case $path in
		*.xz) xz -dc "$path" >"$root/modules/$name" ;;
		*.zst) zstd -qdc "$path" >"$root/modules/$name" ;;
		*) cp "$path" "$root/modules/$name" ;;
		esac
		echo "$name" >>"$root/modules/order"
	done
	(cd "$root" && find . | cpio -o -H newc --quiet -R 0:0) >"$out"
	rm -rf "$root"
}

# fetch_kernel KEY: sets kernel to a folder with vmlinuz, vmlinux, modules.cpio and release
fetch_kernel() {
	local key archive suite patterns uri at names image
	read -r key archive suite _ patterns <<<"$(kernel_row "$1")"
	[ -n "$key" ] || {
		echo "vm: $1: no such kernel: $(kernel_keys | tr '\n' ' ')" >&2
		exit 2
	}
	at=$cache/kernels/$key
	kernel=$at/current
	if [ -n "$(find "$kernel/release" -mmin -$recheck_minutes 2>/dev/null)" ]; then
		return 0
	fi
	uri=$(archive_uri "$archive")
	if [ -z "$uri" ] || [ ! -r "$keyring" ]; then
		[ ! -e "$kernel/release" ] || return 0
		unavailable "$key: this machine has no $archive source to take a kernel from"
	fi
	mkdir -p "$at/lists/partial" "$at/archives/partial"
	echo "deb [signed-by=$keyring] $uri $suite main" >"$at/sources.list"
	# shellcheck disable=SC2086 # several patterns
	if ! apt_private "$at" apt-get update >"$at/log" 2>&1 || ! names=$(newest "$at" $patterns); then
		if [ -e "$kernel/release" ]; then
			echo "vm: $key: $suite cannot be asked now: the kept package is used" >&2
			return 0
		fi
		unavailable "$key: $suite cannot be had: $(tail -n 1 "$at/log")"
	fi
	if [ "$(cat "$kernel/packages" 2>/dev/null)" = "$names" ] && [ -e "$kernel/vmlinuz" ]; then
		touch "$kernel/release"
		return 0
	fi
	rm -rf "$at/new"
	mkdir -p "$at/new/unpacked"
	# shellcheck disable=SC2086 # several names
	(cd "$at/new" && apt_private "$at" apt-get download $names) >>"$at/log" 2>&1 ||
		unavailable "$key: no download of $names: $(tail -n 1 "$at/log")"
	for image in "$at/new"/*.deb; do
		dpkg -x "$image" "$at/new/unpacked"
	done
	image=$(find "$at/new/unpacked" -name 'vmlinuz*' -type f | head -n 1)
	cp "$image" "$at/new/vmlinuz"
	python3 "$lab/vmlinux.py" "$image" "$at/new/vmlinux"
	pack_modules "$at/new/unpacked" "$at/new/modules.cpio"
	find "$at/new/unpacked" -path '*/lib/modules/*' -prune -printf '%f\n' | head -n 1 >"$at/new/release"
	echo "$names" >"$at/new/packages"
	rm -rf "$at/new/unpacked" "$at/new"/*.deb "$kernel"
	mv "$at/new" "$kernel"
}

# packages_of BUILD: the tools and what the programs of the build are linked with, with all they need
packages_of() {
	local libs=() lib
	while read -r lib; do
		libs+=("*/$(basename "$(readlink -f "$lib")")")
	done < <(find "$1" -maxdepth 2 -type f -perm -u+x -exec ldd {} + 2>/dev/null |
		grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$1" | sort -u)
	# shellcheck disable=SC2046 # names
	apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts \
		--no-breaks --no-replaces --no-enhances "${tools[@]}" \
		$(dpkg -S "${libs[@]}" 2>/dev/null | sed 's/: .*//; s/:[a-z0-9]*$//' | sort -u) |
		grep '^[a-z0-9]' | sort -u | comm -12 - <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' |
		sed -n 's/^installed //p' | sort -u)
}

# fetch_root BUILD: sets root_image to a file system with the userland
fetch_root() {
	local packages id at
	packages=$(packages_of "$1")
	# shellcheck disable=SC2086 # names
	id=$( (dpkg-query -W $packages && cat "$lab/fetch.sh") | sha256sum | cut -c1-16)
	root_image=$cache/root/$id.img
	[ ! -e "$root_image" ] || return 0
	mkdir -p "$cache/root"
	rm -f "$cache/root"/*.img
	at=$(mktemp -d)
	# Folders that are links here (/lib) are links there too.
	find / -maxdepth 1 -type l -printf '%P %l\n' | while read -r link to; do
		mkdir -p "$at/$to"
		ln -s "$to" "$at/$link"
	done
	# shellcheck disable=SC2086 # names
	dpkg -L $packages | grep -vE '^/usr/share/(doc|man|locale|info|bash-completion|lintian)/' |
		while read -r file; do
			[ -d "$file" ] && [ ! -L "$file" ] || echo "${file#/}"
		done | sort -u | tar -C / --ignore-failed-read -cf - -T - 2>/dev/null | tar -C "$at" -xf -
	# awk and the like are links that no package owns.
	find /usr/bin /usr/sbin -lname '/etc/alternatives/*' -printf '%p\n' | sed 's@^/@@' |
		tar -C / -cf - -T - etc/alternatives | tar -C "$at" -xf -
	mkdir -p "$at"/{dev,proc,sys,run,tmp,out,root,memprov,var/tmp}
	chmod 1777 "$at/tmp" "$at/var/tmp"
	cp "$at/usr/share/base-passwd/passwd.master" "$at/etc/passwd"
	cp "$at/usr/share/base-passwd/group.master" "$at/etc/group"
	ldconfig -r "$at"
	mke2fs -q -t ext4 -O ^has_journal -d "$at" "$root_image.new" 1G >/dev/null
	rm -rf "$at"
	mv "$root_image.new" "$root_image"
}
