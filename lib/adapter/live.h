/* SPDX-License-Identifier: GPL-2.0-only
 * The sampled allocations that live. Without locks: a signal may come, and a child be forked, at
 * any time. */
#ifndef MP_ADAPTER_LIVE_H
#define MP_ADAPTER_LIVE_H

#include "bpf/shared/types.h"

#define LIVE_BUCKETS 16384u

/* Sampled allocations by bucket; LIVE_ALL: all that is freed counts as sampled. */
#define LIVE_ALL 0xffu
extern u8 live_count[LIVE_BUCKETS];

static inline u32 live_bucket(const void *p)
{
	return (u32)(((u64)p >> 4) * 0x9e3779b97f4a7c15ull >> 50);
}

/* Nearly every free ends here. */
static inline int live_may_be(const void *p)
{
	return __builtin_expect(live_count[live_bucket(p)] != 0, 0);
}

/* With no room left every free is announced from now on: that costs time, and loses nothing. */
void live_add(const void *p, u64 size);
/* Is p to be announced? *ret_size: what it was added with, 0 not known. */
int live_del(const void *p, u64 *ret_size);

#endif
