/* SPDX-License-Identifier: GPL-2.0-only
 * Conditions on which a flight recorder writes its file: a rate of stalls, a size, a cgroup near
 * its limit, pages that come back from swap, a process the kernel kills. */
#ifndef MP_CAPTURE_TRIGGER_H
#define MP_CAPTURE_TRIGGER_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/event.h"

struct group;
struct triggers;

#define TRIGGERS_MAX 8

/* Which one, and why; strings live as long as the triggers. */
struct trigger_cause {
	enum mp_trigger kind;
	const char *expr;
	u64 value, limit;
	u32 tgid; /* killed */
	const char *memcg; /* path of the cgroup, NULL: none */
};

int triggers_new(struct triggers **ret_t);
/* psi:some>10%/1s, psi:full>..., rss>2G, cgroup>90%, refault>1000/s, oom. 0, or -EINVAL with the
 * reason in msg. */
int triggers_add(struct triggers *t, const char *text, char *msg, size_t len);
/* Whose cgroup and pressure they are about: the group that is recorded, else that of pid. -errno
 * with a line in msg when one of them cannot be watched. */
int triggers_open(struct triggers *t, const struct group *g, pid_t pid, char *msg, size_t len);
/* A record of the rings. */
void triggers_feed(struct triggers *t, const struct mp_hdr *rec);
/* Is one due? resident: bytes, as far as known. 1 and *ret_c, 0. */
int triggers_due(struct triggers *t, u64 now_ns, u64 resident, struct trigger_cause *ret_c);
void triggers_free(struct triggers **t);

#endif
