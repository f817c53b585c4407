/* SPDX-License-Identifier: GPL-2.0-only
 * Unique: of a page that several mappings hold, who has it. The first row that is met, so that rows
 * add up; but once another row holds it too, it is no longer the first one's alone: inferred, with
 * a lower bound without it, and the other row's upper bound has it. */
#include <errno.h>
#include <stdlib.h>
#include "lib/join/replay.h"

static struct shared_page *slot(const struct shared_page *set, size_t cap, u64 pfn_id)
{
	size_t i = (pfn_id * 0x9e3779b97f4a7c15ull) >> 20;

	while (set[i & (cap - 1)].pfn_id && set[i & (cap - 1)].pfn_id != pfn_id)
		i++;
	return (struct shared_page *)&set[i & (cap - 1)];
}

static int grow(struct replay *p)
{
	size_t cap = p->cap_pfns ? p->cap_pfns * 2 : 4096, i;
	struct shared_page *set = calloc(cap, sizeof(*set));

	if (!set)
		return -ENOMEM;
	for (i = 0; i < p->cap_pfns; i++)
		if (p->shared[i].pfn_id)
			*slot(set, cap, p->shared[i].pfn_id) = p->shared[i];
	free(p->shared);
	p->shared = set;
	p->cap_pfns = cap;
	return 0;
}

/* The page is no longer its first row's alone. */
static void share(struct replay *p, struct shared_page *page)
{
	struct cost *c = &p->origins[page->origin].cost[COST_UNIQUE];

	if (page->part == PART_EXACT) {
		c->exact -= MP_PAGE_SIZE;
		c->inferred += MP_PAGE_SIZE;
	} else if (page->part == PART_COUNTED) {
		c->counted -= MP_PAGE_SIZE;
	}
	page->part = PART_INFERRED;
}

/* Bytes that more than one row has, in each of them: once for each mapping. */
static void count_multi(struct replay *p, struct shared_page *page, u32 origin)
{
	if (page->origin != origin && !page->multi) {
		p->origins[page->origin].multi += page->times * MP_PAGE_SIZE;
		page->multi = 1;
	}
	if (page->multi)
		p->origins[origin].multi += MP_PAGE_SIZE;
	else
		page->times++;
}

s64 unique_page(struct replay *p, u64 pfn_id, u32 origin, enum cost_part part)
{
	struct shared_page *page;

	if (p->nr_pfns * 2 >= p->cap_pfns && grow(p)) {
		p->err = -ENOMEM;
		return 0;
	}
	page = slot(p->shared, p->cap_pfns, pfn_id);
	if (!page->pfn_id) {
		*page = (struct shared_page){
			.pfn_id = pfn_id, .origin = origin, .part = part, .times = 1};
		p->nr_pfns++;
		return MP_PAGE_SIZE;
	}
	count_multi(p, page, origin);
	if (page->origin != origin) {
		share(p, page);
		p->origins[origin].elsewhere += MP_PAGE_SIZE;
		p->origins[origin].cost[COST_UNIQUE].open = 1;
	}
	return 0;
}
