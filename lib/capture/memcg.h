/* SPDX-License-Identifier: GPL-2.0-only
 * What the kernel says a memory cgroup is charged: its counters, limits, events and every key of
 * memory.stat, read strictly (a line that is not "key number" is an error, never a number) and
 * written as CGROUP and CGROUP_STAT records. What the keys mean is decided when they are joined. */
#ifndef MP_CAPTURE_MEMCG_H
#define MP_CAPTURE_MEMCG_H

#include "lib/capture/cgroup.h"
#include "lib/trace/trace.h"

struct memcg_value {
	const char *source; /* file it comes from */
	char name[48];
	u64 value;
	u32 unit, state; /* enum mp_stat_unit, enum mp_stat_state */
};

struct memcg_reading {
	struct memcg_value *values;
	size_t n;
};

/* All of a group's figures. A file that this kernel has not leaves its figures out. -ENOENT when
 * the group is gone, -EBADMSG for a malformed file; then msg says which. */
int memcg_read(const struct cgroup *c, struct memcg_reading *ret_r, char *msg, size_t len);
/* One figure more, from another source. The strings must outlive the reading. */
int memcg_add(struct memcg_reading *r, const char *source, const char *name, u64 value);
/* A figure of a reading by the name it has there: 0, or -ENODATA for none and for no limit. */
int memcg_figure(const struct memcg_reading *r, const char *name, u64 *ret);
/* Records of a reading. flags: MP_CGROUP_*; groups: folders in the tree, this one included. */
int memcg_write(const struct cgroup *c, const struct memcg_reading *r, u32 groups, u32 flags,
		u32 when, u64 seq, struct trace_writer *w);
void memcg_release(struct memcg_reading *r);

#endif
