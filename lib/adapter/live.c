/* SPDX-License-Identifier: GPL-2.0-only */
#include "lib/adapter/live.h"

#define SLOTS 8

struct slot {
	u64 addr, size; /* addr 0: free */
};

u8 live_count[LIVE_BUCKETS];
static struct slot slots[LIVE_BUCKETS][SLOTS];
static int all;

static void announce_all(void)
{
	u32 i;

	__atomic_store_n(&all, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < LIVE_BUCKETS; i++)
		__atomic_store_n(&live_count[i], LIVE_ALL, __ATOMIC_SEQ_CST);
}

void live_add(const void *p, u64 size)
{
	u32 b = live_bucket(p), i;
	u64 none;

	for (i = 0; i < SLOTS; i++) {
		struct slot *s = &slots[b][i];

		none = 0;
		if (!__atomic_compare_exchange_n(&s->addr, &none, (u64)p, 0, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		/* Nobody frees it before it is returned to who asked for it. */
		s->size = size;
		if (!all)
			__atomic_fetch_add(&live_count[b], 1, __ATOMIC_SEQ_CST);
		return;
	}
	if (!all)
		announce_all();
}

int live_del(const void *p, u64 *ret_size)
{
	u32 b = live_bucket(p), i;

	*ret_size = 0;
	for (i = 0; i < SLOTS; i++) {
		struct slot *s = &slots[b][i];
		u64 size = s->size, addr = (u64)p;

		if (__atomic_load_n(&s->addr, __ATOMIC_SEQ_CST) != addr ||
		    !__atomic_compare_exchange_n(&s->addr, &addr, 0, 0, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		if (!all)
			__atomic_fetch_sub(&live_count[b], 1, __ATOMIC_SEQ_CST);
		*ret_size = size;
		return 1;
	}
	return all;
}
