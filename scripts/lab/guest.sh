#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's second part: mounts, swap, the command, its results onto a raw disk, and off. The
# console's last line carries the exit status: whatever else happens there is none.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs run /run
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t bpf bpf /sys/fs/bpf
mount -t securityfs security /sys/kernel/security 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkswap "$VM_SWAP" >/dev/null && swapon "$VM_SWAP"
stty -F /dev/ttyS1 raw -echo

cd /memprov || exit
echo "vm: $(uname -r), up $(cut -d' ' -f1 /proc/uptime) s"
# shellcheck disable=SC1091 # written for each run
setsid bash ./.vm-command </dev/null >/dev/ttyS1 2>&1
status=$?
stty -F /dev/ttyS1 -raw 2>/dev/null # waits until all is out
tar -C /out -cf "$VM_OUT" . || status=125
echo "vm: exit $status"
busybox poweroff -f
