/* SPDX-License-Identifier: GPL-2.0-only
 * Processes that announce allocations by themselves, by static probes: the adapter's, and others'
 * that are called otel_memory:alloc and free. */
#ifndef MP_CAPTURE_ANNOUNCED_H
#define MP_CAPTURE_ANNOUNCED_H

#include <sys/types.h>
#include "lib/capture/sites.h"

/* These probes of the file behind fd, at most SITES_MAX: their number, or -errno: -ENOEXEC for what
 * is no ELF file of this machine, -EINVAL when one is in a place that cannot be probed, or has its
 * arguments in one that cannot be read. */
int announced_sites(int fd, struct site *ret);
/* Has one of these processes a file with such a probe mapped? */
int announced(const pid_t *pids, int nr);
/* "8@%rdi -4@8(%rsp)": a probe's cookie. -EINVAL. */
int announced_args(const char *text, u64 *ret_cookie);

#endif
