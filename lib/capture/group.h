/* SPDX-License-Identifier: GPL-2.0-only
 * The cgroup that is recorded: who is in it, whose its pages are, and what it is charged at three
 * moments. */
#ifndef MP_CAPTURE_GROUP_H
#define MP_CAPTURE_GROUP_H

#include <stddef.h>
#include <sys/types.h>
#include "lib/trace/trace.h"

struct cgroup;
struct group;
struct pagecg;

/* As cgroup_find() on this machine. On failure -errno and a line in msg. */
int group_open(const char *spec, char *msg, size_t len, struct group **ret_g);
/* Calls fn for each process of the group's tree that has memory, except this one. */
int group_each(const struct group *g, int (*fn)(void *ctx, pid_t pid), void *ctx);
const struct cgroup *group_cgroup(const struct group *g);
/* For the pictures; NULL when the kernel does not say whose a page is. */
struct pagecg *group_pages(const struct group *g);
/* Why not, NULL when it does. */
const char *group_pages_reason(const struct group *g);
/* A new round of pictures begins. 0 or -errno. */
int group_round(struct group *g);
/* Reads and writes the figures (when: enum mp_cgroup_when). search: for what no picture shows, too.
 * A group that is gone is an error at the start only. */
int group_write(struct group *g, u32 when, int search, u64 seq, struct trace_writer *w);
/* Of the last error: which file and why; "" without one. */
const char *group_error(const struct group *g);
void group_close(struct group **g);

#endif
