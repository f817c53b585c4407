/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/seen.h"

u64 seen_mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

u64 seen_key(u32 kind, u32 space, u64 v)
{
	u64 key = seen_mix(seen_mix(seen_mix(0, kind), space), v);

	return key + !key;
}

static struct seen *slot_of(struct seen *slots, size_t cap, u64 key)
{
	size_t i = key & (cap - 1);

	while (slots[i].key && slots[i].key != key)
		i = (i + 1) & (cap - 1);
	return &slots[i];
}

struct seen *seen_find(const struct seen_set *s, u64 key)
{
	struct seen *at = s->cap ? slot_of(s->slots, s->cap, key) : NULL;

	return at && at->key ? at : NULL;
}

static int always(void *ctx, u32 space)
{
	(void)ctx;
	(void)space;
	return 1;
}

/* What fn wants goes into a table of cap slots. */
static int rehash(struct seen_set *s, size_t cap, int (*fn)(void *ctx, u32 space), void *ctx)
{
	struct seen *slots = calloc(cap, sizeof(*slots));
	size_t i, nr = 0;

	if (!slots)
		return -ENOMEM;
	for (i = 0; i < s->cap; i++)
		if (s->slots[i].key && fn(ctx, s->slots[i].space)) {
			*slot_of(slots, cap, s->slots[i].key) = s->slots[i];
			nr++;
		}
	free(s->slots);
	*s = (struct seen_set){slots, nr, cap};
	return 0;
}

struct seen *seen_get(struct seen_set *s, u32 space, u64 key)
{
	struct seen *at;

	if (s->nr * 2 >= s->cap && rehash(s, s->cap ? s->cap * 2 : 4096, always, NULL))
		return NULL;
	at = slot_of(s->slots, s->cap, key);
	s->nr += !at->key;
	at->key = key;
	at->space = space;
	return at;
}

int seen_keep(struct seen_set *s, int (*fn)(void *ctx, u32 space), void *ctx)
{
	return s->cap ? rehash(s, s->cap, fn, ctx) : 0;
}

void seen_release(struct seen_set *s)
{
	free(s->slots);
	memset(s, 0, sizeof(*s));
}
