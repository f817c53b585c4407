/* SPDX-License-Identifier: GPL-2.0-only
 * Probes on the allocators of the processes that a session follows. They are put on the files that
 * a process maps, for this process alone: a child, and what it becomes, is probed as it is noticed,
 * and what it allocated before is a loss. They go with the recorder, however it ends. */
#ifndef MP_CAPTURE_UPROBES_H
#define MP_CAPTURE_UPROBES_H

#include <sys/types.h>
#include "bpf/shared/event.h"
#include "lib/capture/spawn.h"

struct session;
struct uprobes;

struct uprobes_opts {
	int announced; /* static probes of announced.h, not the functions of allocators */
	u64 min_bytes; /* smaller allocations are not recorded, nor known */
	const char *prefixes; /* of pools' functions, comma separated; NULL: none */
	u64 ring_bytes; /* 0: as built */
};

/* Loads the programs. On failure -errno, and a line of reason and remedy in msg. */
int uprobes_open(struct session *s, const struct uprobes_opts *o, char *msg, size_t msg_len,
		 struct uprobes **ret_u);
/* The one file to be probed, in whatever process that maps it: nothing is missed in a child,
 * however it comes about. */
int uprobes_everywhere(struct uprobes *u, const char *path);
/* pid, which waits for that, will execute this command: its files are probed beforehand, so that
 * nothing of it is missed. */
int uprobes_expect(struct uprobes *u, pid_t pid, const char *command,
		   const struct spawn_user *user);
/* Puts probes on what was mapped since the last turn. Whenever the rings were drained. */
int uprobes_turn(struct uprobes *u);
/* Takes all probes off; what they sent is still in the rings. */
void uprobes_detach(struct uprobes *u);
void uprobes_free(struct uprobes **u);

/* Programs that were executed, and of them those that did not load what announces allocations. */
u64 uprobes_silent(const struct uprobes *u, u64 *ret_programs);
/* A file that cannot be probed, and why: NULL none. */
const char *uprobes_refused(const struct uprobes *u);

#endif
