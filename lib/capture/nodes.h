/* SPDX-License-Identifier: GPL-2.0-only
 * Which NUMA node a page frame lies on, by the zones of /proc/zoneinfo. */
#ifndef MP_CAPTURE_NODES_H
#define MP_CAPTURE_NODES_H

#include "bpf/shared/walk.h"

struct nodes {
	struct mp_walk_node range[MP_WALK_MAX_NODES];
	u32 n; /* 0: unknown (zones of two nodes overlap, or too many) */
};

void nodes_read(const char *zoneinfo, struct nodes *ret_n);
u32 nodes_find(const struct nodes *n, u64 pfn); /* ~0 unknown */

#endif
