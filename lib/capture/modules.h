/* SPDX-License-Identifier: GPL-2.0-only
 * The files that were mapped, opened by who may open them, and proven to be the ones mapped: a file
 * that took the name of another gives no names. */
#ifndef MP_CAPTURE_MODULES_H
#define MP_CAPTURE_MODULES_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/event.h"

struct modules {
	struct module {
		u64 ino;
		u32 dev;
		int fd;
	} * files;
	size_t nr_files;
	int *fds; /* all that is open: files and roots */
	size_t nr_fds;
	int vdso; /* 0: not asked for */
};

/* The root directory of a process, -1 when it is gone: then names are looked up in ours. Many of
 * one directory are one fd. */
int modules_root(struct modules *m, pid_t pid);
/* The file behind a mapping of pid, or SYM_NO_FILE. */
int modules_file(struct modules *m, pid_t pid, int root, const struct mp_ev_vma *v,
		 const char *path);
/* The same, kept by the caller; -errno. */
int modules_open_mapped(pid_t pid, const struct mp_ev_vma *v, const char *path);
/* Calls fn with each file whose code a process has mapped, once a mapping; stops when fn returns
 * non-zero, and returns that. */
int modules_each_code(pid_t pid,
		      int (*fn)(void *ctx, int fd, const struct mp_ev_vma *v, const char *path),
		      void *ctx);
/* The file in which the process says what the code is called that it has made, when it is its own;
 * else SYM_NO_FILE. */
int modules_perf_map(struct modules *m, pid_t pid, int root);
void modules_release(struct modules *m);

#endif
