/* SPDX-License-Identifier: GPL-2.0-only
 * By what a recording knows of allocations: the adapter in a command, static probes that a process
 * carries, probes on the allocator's functions, or nothing but mappings. */
#ifndef MP_CAPTURE_ALLOCS_H
#define MP_CAPTURE_ALLOCS_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/types.h"

struct allocs;
struct session;
struct spawn_user;

#define ALLOCS_SAMPLE_BYTES (512u << 10)

enum alloc_mode { ALLOC_AUTO, ALLOC_ADAPTER, ALLOC_UPROBE, ALLOC_MAP, ALLOC_MODES };
extern const char *const alloc_mode_names[ALLOC_MODES];

struct allocs_opts {
	enum alloc_mode mode;
	char *const *argv; /* the command, NULL: pids */
	const struct spawn_user *user; /* whom it runs as */
	const pid_t *pids;
	int nr_pids;
	u64 sample_bytes; /* between samples in the mean, 1: every call */
	u64 min_bytes; /* uprobes_opts */
	const char *prefixes; /* uprobes_opts */
	u64 ring_bytes; /* uprobes_opts */
};

/* Decides, and loads what is needed. On failure -errno, and a line of reason and remedy in msg; so
 * is a way that was named and cannot be gone. */
int allocs_open(struct session *s, const struct allocs_opts *o, char *msg, size_t msg_len,
		struct allocs **ret_a);
/* Before the first picture, or before the command (child, which waits) is executed. */
int allocs_start(struct allocs *a, pid_t child);
int allocs_turn(struct allocs *a); /* whenever the rings were drained */
void allocs_detach(struct allocs *a); /* what was sent is still in the rings */
void allocs_free(struct allocs **a);

/* The file that the command will preload, and the environment for that; NULL: none. */
const char *allocs_file(const struct allocs *a);
char *const *allocs_env(const struct allocs *a);
/* For the trace: no provider: why owners are mappings. A reason beside a provider: it does not see
 * all. */
const char *allocs_provider(const struct allocs *a, const char **ret_stability,
			    const char **ret_reason);
/* Programs that were executed, and of them those that did not load the adapter. */
u64 allocs_silent(const struct allocs *a, u64 *ret_programs);
/* Allocations that are not recorded although that might have been expected, and why; NULL: none. */
const char *allocs_refused(const struct allocs *a);

#endif
