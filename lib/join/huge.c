/* SPDX-License-Identifier: GPL-2.0-only
 * Huge pages that are known to have been there, by a fault, a collapse or a space's first picture:
 * one that the last picture shows in small pages was split. What is unmapped whole is forgotten. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/replay.h"

#define HUGE_BYTES (2ull << 20)

static int is_before(const struct huge *h, u32 space, u64 addr)
{
	return h->space != space ? h->space < space : h->addr < addr;
}

/* The first that is not before. */
static size_t place(const struct replay *p, u32 space, u64 addr)
{
	size_t lo = 0, hi = p->nr_huge, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (is_before(&p->huge[mid], space, addr))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int huge_add(struct replay *p, u32 space, u64 addr)
{
	size_t at;

	addr = addr / HUGE_BYTES * HUGE_BYTES;
	at = place(p, space, addr);
	if (at < p->nr_huge && p->huge[at].space == space && p->huge[at].addr == addr)
		return 0;
	if (p->nr_huge == p->cap_huge) {
		size_t cap = p->cap_huge ? 2 * p->cap_huge : 64;
		struct huge *more = realloc(p->huge, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		p->huge = more;
		p->cap_huge = cap;
	}
	memmove(&p->huge[at + 1], &p->huge[at], (p->nr_huge - at) * sizeof(*p->huge));
	p->huge[at] = (struct huge){.space = space, .addr = addr};
	p->nr_huge++;
	return 0;
}

void huge_forget(struct replay *p, u32 space, u64 start, u64 end)
{
	size_t from = place(p, space, start), to = from;

	while (to < p->nr_huge && p->huge[to].space == space &&
	       p->huge[to].addr + HUGE_BYTES <= end)
		to++;
	if (to == from)
		return;
	memmove(&p->huge[from], &p->huge[to], (p->nr_huge - to) * sizeof(*p->huge));
	p->nr_huge -= to - from;
}

/* A table moves whole where both places are aligned; else its pages move one by one, as small ones.
 */
int huge_move(struct replay *p, u32 space, u64 old, u64 len, u64 to)
{
	size_t at;
	u64 addr;

	while ((at = place(p, space, old)) < p->nr_huge && p->huge[at].space == space &&
	       p->huge[at].addr + HUGE_BYTES <= old + len) {
		addr = p->huge[at].addr;
		huge_forget(p, space, addr, addr + HUGE_BYTES);
		if ((to - old) % HUGE_BYTES == 0 && huge_add(p, space, to + (addr - old)))
			return -ENOMEM;
	}
	return 0;
}

void huge_split(struct replay *p, u32 space, const struct mp_ev_run *run)
{
	u64 end = run->start + run->pages * MP_PAGE_SIZE, addr;
	size_t at = place(p, space, run->start / HUGE_BYTES * HUGE_BYTES);

	while (at < p->nr_huge && p->huge[at].space == space && p->huge[at].addr < end) {
		addr = p->huge[at].addr;
		/* The next that is left comes to its place. */
		huge_forget(p, space, addr, addr + HUGE_BYTES);
		life_count(p, space, addr > run->start ? addr : run->start, COST_SPLITS);
	}
}
