/* SPDX-License-Identifier: GPL-2.0-only
 * The recorded memory cgroup: the kernel's figures as read, and the rows for what it is charged
 * beyond the pages its processes map. */
#ifndef MP_JOIN_MEMCG_H
#define MP_JOIN_MEMCG_H

#include <stddef.h>
#include "bpf/shared/event.h"

#define MEMCG_STAT  "memory.stat"
#define MEMCG_PAGES "/proc/kpagecgroup"

struct memcg_figure {
	const char *source, *name;
	u64 value;
	u32 unit, state, when; /* enum mp_stat_unit, mp_stat_state, mp_cgroup_when */
};

struct memcg {
	const char *path;
	u32 version, groups, flags; /* MP_CGROUP_* of the last reading */
	u32 nr_cpus;
	u8 read[4]; /* by enum mp_cgroup_when: there is a reading */
	struct memcg_figure *figures;
	size_t n;
};

/* NULL when it was not read. source NULL: a figure with a name of memprov's own, not a key. */
const struct memcg_figure *memcg_find(const struct memcg *m, const char *source, const char *name,
				      u32 when);
/* The latest reading there is. */
u32 memcg_latest(const struct memcg *m);

#endif
