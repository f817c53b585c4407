/* SPDX-License-Identifier: GPL-2.0-only
 * Where in a file the functions of an allocator are. The file may be an attacker's: a jailed child
 * reads it. */
#ifndef MP_CAPTURE_SITES_H
#define MP_CAPTURE_SITES_H

#include <stddef.h>
#include "bpf/shared/config.h"

#define SITES_MAX 128 /* of a file */

struct site {
	u64 offset; /* in the file */
	u64 counter; /* offset of what counts the listeners of a static probe, 0 none */
	u64 cookie; /* the probe's */
	u32 args; /* enum mp_alloc_args */
	u32 family; /* enum mp_family */
};

/* The functions of malloc's family and C++'s operators that the file behind fd defines, each place
 * once, whatever it is called; and those of pools, whose names are one of the prefixes (comma
 * separated; NULL none) before malloc's. Their number, at most SITES_MAX, or -errno: -ENOEXEC for
 * what is no ELF file of this machine, -ENOTSUP for a Go program, which return probes would crash.
 */
int sites_read(int fd, const char *prefixes, struct site *ret);

#endif
