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
/* Puts the program on nr places of the file, or on the returns from there, for pid alone. An fd
 * that takes the probes off when it is closed, or -errno. */
int multi_attach(int prog_fd, pid_t pid, const char *path, const u64 *offsets, const u64 *cookies,
		 size_t nr, int returns);

#endif
