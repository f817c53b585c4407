/* SPDX-License-Identifier: GPL-2.0-only
 * What the page-table walker and its reader share: one pass fills two arrays, user space empties
 * them and starts the next pass at walk_next. */
#ifndef MP_SHARED_WALK_H
#define MP_SHARED_WALK_H

#include "types.h"
#include "event.h"

#define MP_WALK_MAX_RUNS  65536u
#define MP_WALK_MAX_VMAS  8192u
#define MP_WALK_MAX_NODES 16u
#define MP_CAL_PAGES	  8u

/* Beside MP_PAGE_*: only the reader can tell whether this is the zero page (kpageflags). */
#define MP_WALK_ASK (1u << 30)

struct mp_walk_run {
	u64 start, pfn; /* of the first page; consecutive where mapcount > 1 */
	u32 pages, flags, mapcount, node;
};

struct mp_walk_vma {
	u64 start, end, vm_flags;
	u64 object_swap; /* pages of the tmpfs object under it that are in swap */
	u32 first_run, nr_runs;
	u32 is_shmem, reserved0;
};

struct mp_walk_node {
	u64 start_pfn, end_pfn;
	u32 node, reserved0;
};

struct mp_walk_table {
	u64 e[512];
};

#endif
