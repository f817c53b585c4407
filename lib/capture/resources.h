/* SPDX-License-Identifier: GPL-2.0-only
 * The probes of memprov-usdt.h in the processes that a session follows: applications that name
 * their resources. They are put on each file with such probes, for this process alone, as it is
 * mapped; what was said before that is a loss. */
#ifndef MP_CAPTURE_RESOURCES_H
#define MP_CAPTURE_RESOURCES_H

#include <sys/types.h>
#include "lib/capture/spawn.h"
#include "lib/trace/trace.h"

struct resources;
struct session;

/* A RESOURCE or RESOURCE_END of the ring, whose name lies behind it: into the trace, which names it
 * by id. */
int resource_record(struct trace_writer *w, const struct mp_hdr *wire);

int resources_open(struct session *s, struct resources **ret_r);
/* pid, which waits for that, will execute this command: nothing it says is missed. */
int resources_expect(struct resources *r, pid_t pid, const char *command,
		     const struct spawn_user *user);
/* Puts probes on what was mapped since the last turn. Whenever the rings were drained. */
int resources_turn(struct resources *r);
/* RESOURCE_USE records: when each resource was used last, as of now. */
int resources_write_uses(const struct resources *r, struct trace_writer *w);
void resources_detach(struct resources *r);
void resources_free(struct resources **r);

#endif
