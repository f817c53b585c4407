/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/capture/multi.h"

/* What BPF_LINK_CREATE reads for uprobe_multi. */
struct link_create {
	u32 prog_fd, target_fd, attach_type, flags;
	u64 path, offsets, ref_ctr_offsets, cookies;
	u32 cnt, multi_flags, pid, reserved;
};

#define RETURNS 1u /* BPF_F_UPROBE_MULTI_RETURN */

int multi_attach(int prog_fd, pid_t pid, const char *path, const struct multi_sites *at,
		 int returns)
{
	struct link_create attr = {
		.prog_fd = (u32)prog_fd,
		.attach_type = MULTI_ATTACH_TYPE,
		.path = (u64)(unsigned long)path,
		.offsets = (u64)(unsigned long)at->offsets,
		.ref_ctr_offsets = (u64)(unsigned long)at->counters,
		.cookies = (u64)(unsigned long)at->cookies,
		.cnt = (u32)at->nr,
		.multi_flags = returns ? RETURNS : 0,
		.pid = (u32)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

/* A directory is no file to probe, and that is found out last; a pid below 0 is refused only since
 * the kernel takes it for a process and not for a thread (Linux 6.10). */
int multi_works(int prog_fd)
{
	const u64 offset = 0;
	const struct multi_sites at = {.offsets = &offset, .nr = 1};

	return multi_attach(prog_fd, 0, "/", &at, 0) == -EBADF &&
	       multi_attach(prog_fd, -1, "/", &at, 0) == -EINVAL;
}
