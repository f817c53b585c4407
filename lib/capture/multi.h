/* SPDX-License-Identifier: GPL-2.0-only
 * Many probes of a file by one call (Linux 6.6), which the system's libbpf and headers may not
 * know. */
#ifndef MP_CAPTURE_MULTI_H
#define MP_CAPTURE_MULTI_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/types.h"

#define MULTI_ATTACH_TYPE 48u /* BPF_TRACE_UPROBE_MULTI: a program is loaded for it */

/* Has the kernel it, with probes of a process that all its threads meet? prog_fd was loaded for it.
 */
int multi_works(int prog_fd);
struct multi_sites {
	const u64 *offsets, *cookies; /* of each place */
	const u64 *counters; /* offsets of what counts a static probe's listeners; NULL none */
	size_t nr;
};

/* Puts the program on places of the file, or on the returns from there, for pid alone; 0: for
 * everybody. An fd that takes the probes off when it is closed, or -errno. */
int multi_attach(int prog_fd, pid_t pid, const char *path, const struct multi_sites *at,
		 int returns);

#endif
