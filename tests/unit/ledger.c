/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of the ledger: named cases, then random streams of operations against a model that
 * knows every page of a small window by itself. The numbered invariants are those of ledger.h.
 * ./ledger [seed] tests; ./ledger bench only prints what 64 GiB cost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/ledger/ledger.h"
#include "lib/ledger/space.h"
#include "tests/unit/check.h"

#define PG     MP_PAGE_SIZE
#define GIB    (1ull << 30)
#define BASE   (0x7f0000000000ull + 300 * PG)
#define WINDOW 2048u
#define SPACES 4u

static u64 seed_arg;
static struct ledger *l;

static int is_interval(u32 space, u64 addr, u64 start, u64 end, u32 origin)
{
	struct ledger_interval iv;

	return ledger_find(l, space, addr, &iv) && iv.start == start && iv.end == end &&
	       iv.origin == origin;
}

static u32 fault(u32 space, u64 addr, u32 order, u32 fault_origin)
{
	u32 origin, pages;

	if (ledger_fault(l, space, addr, order, fault_origin, &origin, &pages))
		return ~0u;
	return pages;
}

static int munmap_middle_leaves_two_intervals_with_same_origin(void)
{
	struct ledger_interval whole, a, b;

	CHECK(!ledger_map(l, 1, BASE, BASE + 9 * PG, 7));
	CHECK(ledger_find(l, 1, BASE, &whole));
	CHECK(!ledger_unmap(l, 1, BASE + 3 * PG, BASE + 6 * PG));
	CHECK(is_interval(1, BASE, BASE, BASE + 3 * PG, 7));
	CHECK(is_interval(1, BASE + 8 * PG, BASE + 6 * PG, BASE + 9 * PG, 7));
	CHECK(ledger_find(l, 1, BASE, &a) && ledger_next(l, 1, a.end, &b));
	CHECK(!ledger_find(l, 1, BASE + 4 * PG, &a) && !ledger_next(l, 1, b.end, &a));
	CHECK(ledger_find(l, 1, BASE, &a) && a.gen > whole.gen && b.gen > whole.gen);
	CHECK(a.gen != b.gen && ledger_mapped_bytes(l, 1) == 6 * PG);
	return 1;
}

static int survivors_of_a_split_keep_the_faulted_memory(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 9 * PG, 7));
	CHECK(fault(1, BASE, 0, 5) == 1 && fault(1, BASE + 4 * PG, 0, 5) == 1);
	CHECK(!ledger_unmap(l, 1, BASE + 4 * PG, BASE + 5 * PG));
	CHECK(ledger_page(l, 1, BASE) == 5 && ledger_page(l, 1, BASE + 4 * PG) == 0);
	CHECK(!ledger_map(l, 1, BASE + 4 * PG, BASE + 5 * PG, 8));
	CHECK(fault(1, BASE, 0, 6) == 0 && fault(1, BASE + 4 * PG, 0, 6) == 1);
	return 1;
}

static int map_fixed_replaces(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 9 * PG, 7));
	CHECK(fault(1, BASE + 4 * PG, 0, 5) == 1);
	CHECK(!ledger_map(l, 1, BASE + 3 * PG, BASE + 12 * PG, 8));
	CHECK(is_interval(1, BASE, BASE, BASE + 3 * PG, 7));
	CHECK(is_interval(1, BASE + 4 * PG, BASE + 3 * PG, BASE + 12 * PG, 8));
	CHECK(ledger_page(l, 1, BASE + 4 * PG) == 0 && ledger_mapped_bytes(l, 1) == 12 * PG);
	return 1;
}

static int remap_grow_in_place_gives_the_tail_the_new_origin(void)
{
	struct ledger_interval a, b;

	CHECK(!ledger_map(l, 1, BASE, BASE + 4 * PG, 7) && ledger_find(l, 1, BASE, &a));
	CHECK(!ledger_remap(l, 1, BASE, 4 * PG, BASE, 6 * PG, 0, 8));
	CHECK(ledger_find(l, 1, BASE, &b) && a.gen == b.gen && a.end == b.end);
	CHECK(is_interval(1, BASE + 5 * PG, BASE + 4 * PG, BASE + 6 * PG, 8));
	return 1;
}

static int remap_move_takes_pages_and_origins_along(void)
{
	u64 to = BASE + 1000 * PG;
	u64 huge = 0x600000000000ull;

	CHECK(!ledger_map(l, 1, BASE, BASE + 2 * PG, 7));
	CHECK(!ledger_map(l, 1, BASE + 2 * PG, BASE + 4 * PG, 9));
	CHECK(fault(1, BASE + 3 * PG, 0, 5) == 1);
	CHECK(!ledger_remap(l, 1, BASE, 4 * PG, to, 6 * PG, 0, 8));
	CHECK(is_interval(1, to, to, to + 2 * PG, 7));
	CHECK(is_interval(1, to + 2 * PG, to + 2 * PG, to + 4 * PG, 9));
	CHECK(is_interval(1, to + 4 * PG, to + 4 * PG, to + 6 * PG, 8));
	CHECK(ledger_page(l, 1, to + 3 * PG) == 5 && fault(1, to + 3 * PG, 0, 6) == 0);
	CHECK(!ledger_page(l, 1, BASE + 3 * PG) && ledger_mapped_bytes(l, 1) == 6 * PG);
	CHECK(!ledger_map(l, 1, huge, huge + 64 * GIB, 7));
	CHECK(fault(1, huge + 9 * GIB, 9, 5) == 512);
	CHECK(!ledger_remap(l, 1, huge, 64 * GIB, huge * 2, 64 * GIB, 0, 8));
	CHECK(ledger_page(l, 1, huge * 2 + 9 * GIB + PG) == 5);
	return 1;
}

static int remap_dontunmap_keeps_the_old_range_without_pages(void)
{
	u64 to = BASE + 1000 * PG;

	CHECK(!ledger_map(l, 1, BASE, BASE + 4 * PG, 7) && fault(1, BASE, 0, 5) == 1);
	CHECK(!ledger_remap(l, 1, BASE, 4 * PG, to, 4 * PG, 1, 8));
	CHECK(is_interval(1, BASE, BASE, BASE + 4 * PG, 7));
	CHECK(is_interval(1, to, to, to + 4 * PG, 7));
	CHECK(ledger_page(l, 1, BASE) == 0 && ledger_page(l, 1, to) == 5);
	CHECK(fault(1, BASE, 0, 6) == 1 && ledger_mapped_bytes(l, 1) == 8 * PG);
	return 1;
}

static int remap_shrink_drops_the_tail(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 4 * PG, 7) && fault(1, BASE + 3 * PG, 0, 5) == 1);
	CHECK(!ledger_remap(l, 1, BASE, 4 * PG, BASE, PG, 0, 8));
	CHECK(is_interval(1, BASE, BASE, BASE + PG, 7));
	CHECK(ledger_page(l, 1, BASE + 3 * PG) == 0 && ledger_mapped_bytes(l, 1) == PG);
	return 1;
}

static int remap_of_length_zero_duplicates(void)
{
	u64 to = BASE + 1000 * PG;

	CHECK(!ledger_map(l, 1, BASE, BASE + 4 * PG, 7) && fault(1, BASE, 0, 5) == 1);
	CHECK(!ledger_remap(l, 1, BASE, 0, to, 4 * PG, 0, 8));
	CHECK(is_interval(1, BASE, BASE, BASE + 4 * PG, 7) && ledger_page(l, 1, BASE) == 5);
	CHECK(is_interval(1, to, to, to + 4 * PG, 8) && ledger_page(l, 1, to) == 0);
	return 1;
}

static int discarded_page_faulted_again_is_not_new(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 1024 * PG, 7) && fault(1, BASE, 0, 5) == 1);
	CHECK(!ledger_discard(l, 1, BASE, BASE + 1024 * PG) && ledger_page(l, 1, BASE) == 0);
	CHECK(fault(1, BASE, 0, 6) == 0 && fault(1, BASE + PG, 0, 6) == 1);
	return 1;
}

static int huge_fault_is_clipped_to_its_interval(void)
{
	u64 block = 0x7f0000000000ull;
	u32 origin, pages;

	CHECK(!ledger_map(l, 1, block + 10 * PG, block + 20 * PG, 7));
	CHECK(!ledger_map(l, 1, block + 20 * PG, block + 30 * PG, 8));
	CHECK(!ledger_fault(l, 1, block + 15 * PG + 123, 9, 5, &origin, &pages));
	CHECK(origin == 7 && pages == 10);
	CHECK(ledger_page(l, 1, block + 19 * PG) == 5 && !ledger_page(l, 1, block + 20 * PG));
	CHECK(!ledger_fault(l, 1, block, 9, 5, &origin, &pages) && !origin && !pages);
	return 1;
}

static int fork_is_independent_after_changes(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 9 * PG, 7) && fault(1, BASE, 0, 5) == 1);
	CHECK(!ledger_space_new(l, 2, 1));
	CHECK(fault(2, BASE, 0, 6) == 0 && fault(1, BASE + PG, 0, 4) == 1);
	CHECK(ledger_page(l, 1, BASE) == 5 && ledger_page(l, 2, BASE) == 6);
	CHECK(ledger_page(l, 2, BASE + PG) == 0);
	CHECK(!ledger_unmap(l, 1, BASE, BASE + 2 * PG));
	CHECK(is_interval(2, BASE, BASE, BASE + 9 * PG, 7) && ledger_page(l, 2, BASE) == 6);
	CHECK(!ledger_space_end(l, 1));
	CHECK(is_interval(2, BASE, BASE, BASE + 9 * PG, 7) && !ledger_mapped_bytes(l, 1));
	return 1;
}

/* Invariant 3. */
static int a_thousand_forks_of_100k_intervals_are_cheap(void)
{
	u64 before;
	u32 i;

	for (i = 0; i < 100000; i++)
		CHECK(!ledger_map(l, 1, BASE + 2 * i * PG, BASE + (2 * i + 1) * PG, i + 1));
	before = ledger_memory(l);
	for (i = 0; i < 1000; i++) {
		CHECK(!ledger_space_new(l, 100 + i, 1));
		CHECK(ledger_mapped_bytes(l, 100 + i) == 100000 * PG);
	}
	CHECK(ledger_memory(l) - before < 1000 * 128);
	for (i = 0; i < 1000; i++)
		CHECK(!ledger_unmap(l, 100 + i, BASE + 2 * i * PG, BASE + (2 * i + 1) * PG));
	CHECK(ledger_memory(l) - before < 64ull << 20);
	CHECK(is_interval(1, BASE, BASE, BASE + PG, 1));
	return 1;
}

static int reserving_64_gib_and_unmapping_costs_constant_memory(void)
{
	u64 before = ledger_memory(l);
	u32 i;

	CHECK(!ledger_map(l, 1, BASE, BASE + 64 * GIB, 7));
	CHECK(ledger_memory(l) - before < 256);
	for (i = 0; i < 1000; i++) {
		CHECK(!ledger_unmap(l, 1, BASE + GIB, BASE + 63 * GIB));
		CHECK(!ledger_map(l, 1, BASE + GIB, BASE + 63 * GIB, 8));
		CHECK(ledger_memory(l) - before < 512);
	}
	CHECK(!ledger_unmap(l, 1, BASE, BASE + 64 * GIB) && ledger_memory(l) == before);
	return 1;
}

static int ledger_memory_returns_to_the_start_after_frees(void)
{
	u64 before;
	u32 i;

	CHECK(!ledger_space_end(l, 1));
	before = ledger_memory(l);
	CHECK(!ledger_space_new(l, 1, 0) && !ledger_map(l, 1, BASE, BASE + GIB, 7));
	for (i = 0; i < 2000; i++)
		CHECK(fault(1, BASE + i * 97ull * PG, 0, i % 7) != ~0u);
	CHECK(!ledger_space_new(l, 2, 1) && !ledger_unmap(l, 2, BASE + PG, BASE + 777 * PG));
	CHECK(ledger_memory(l) > before);
	CHECK(!ledger_space_end(l, 1) && !ledger_space_end(l, 2) && ledger_memory(l) == before);
	return 1;
}

static int bad_arguments_are_refused(void)
{
	u32 origin, pages;

	CHECK(ledger_map(l, 1, BASE + 1, BASE + PG, 7) == -EINVAL);
	CHECK(ledger_map(l, 1, BASE, BASE, 7) == -EINVAL);
	CHECK(ledger_map(l, 1, BASE, BASE - PG, 7) == -EINVAL);
	CHECK(ledger_map(l, 1, BASE, (1ull << 57) + PG, 7) == -EINVAL);
	CHECK(!ledger_map(l, 1, (1ull << 57) - PG, 1ull << 57, 7));
	CHECK(ledger_unmap(l, 1, BASE, BASE + 1) == -EINVAL);
	CHECK(ledger_discard(l, 1, BASE, BASE) == -EINVAL);
	CHECK(ledger_remap(l, 1, BASE, 4 * PG, BASE + 3 * PG, 4 * PG, 0, 7) == -EINVAL);
	CHECK(ledger_remap(l, 1, BASE, 4 * PG, BASE + 9 * PG, 0, 0, 7) == -EINVAL);
	CHECK(ledger_remap(l, 1, BASE, ~0ull - PG + 1, 0, PG, 0, 7) == -EINVAL);
	CHECK(ledger_map(l, 9, BASE, BASE + PG, 7) == -ENOENT);
	CHECK(ledger_fault(l, 9, BASE, 0, 7, &origin, &pages) == -ENOENT);
	CHECK(ledger_space_end(l, 9) == -ENOENT && ledger_space_new(l, 2, 9) == -ENOENT);
	CHECK(ledger_space_new(l, 1, 0) == -EEXIST);
	return 1;
}

struct model_page {
	u32 interval; /* the model's own number, 0: unmapped */
	u32 origin, fault;
	u32 faulted;
};

struct model {
	int alive;
	u64 ever_mapped, unmapped;
	struct model_page pages[WINDOW];
};

static struct model models[SPACES];
static u32 model_gen;
static u64 rng;

static u32 rnd(u32 below)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(rng >> 33) % below;
}

static void model_clear(struct model *m, u32 a, u32 b)
{
	for (; a < b; a++) {
		m->unmapped += m->pages[a].interval ? PG : 0;
		memset(&m->pages[a], 0, sizeof(m->pages[a]));
	}
}

static void model_map(struct model *m, u32 a, u32 b, u32 origin)
{
	model_clear(m, a, b);
	m->ever_mapped += (b - a) * PG;
	model_gen++;
	for (; a < b; a++)
		m->pages[a] = (struct model_page){.interval = model_gen, .origin = origin};
}

/* Pages next to each other are of one interval when their numbers are equal, so a move and what
 * stays behind need numbers that differ from all others but still tell neighbours apart. */
static void model_renumber(struct model *m, u32 a, u32 b)
{
	u32 was = 0;

	for (; a < b; a++) {
		if (!m->pages[a].interval)
			continue;
		if (m->pages[a].interval != was) {
			was = m->pages[a].interval;
			model_gen++;
		}
		m->pages[a].interval = model_gen;
	}
}

static void model_remap(struct model *m, u32 a, u32 n, u32 to, u32 to_n, int stay, u32 origin)
{
	static struct model_page moved[WINDOW];
	u32 keep = n < to_n ? n : to_n, i;

	model_clear(m, a + keep, a + n);
	if (keep && a != to) {
		model_clear(m, to, to + to_n);
		memcpy(moved, m->pages + a, keep * sizeof(moved[0]));
		for (i = a; i < a + keep; i++) {
			m->ever_mapped += m->pages[i].interval ? PG : 0;
			m->pages[i].fault = m->pages[i].faulted = 0;
		}
		if (stay)
			model_renumber(m, a, a + keep);
		else
			model_clear(m, a, a + keep);
		memcpy(m->pages + to, moved, keep * sizeof(moved[0]));
		model_renumber(m, to, to + keep);
	}
	if (to_n > keep)
		model_map(m, to + keep, to + to_n, origin);
}

static u32 model_fault(struct model *m, u32 at, u32 order, u32 origin)
{
	u64 first = (BASE / PG + at) >> order << order, page;
	u32 new_pages = 0, i;

	if (!m->pages[at].interval)
		return 0;
	for (page = first; page < first + (1u << order); page++) {
		i = (u32)(page - BASE / PG);
		if (page < BASE / PG || i >= WINDOW ||
		    m->pages[i].interval != m->pages[at].interval)
			continue;
		/* A hole ends the interval, its two sides still have one number. */
		if (i < at) {
			u32 k = i;

			while (k < at && m->pages[k].interval == m->pages[at].interval)
				k++;
			if (k < at)
				continue;
		} else {
			u32 k = at;

			while (k < i && m->pages[k].interval == m->pages[at].interval)
				k++;
			if (k < i)
				continue;
		}
		new_pages += !m->pages[i].faulted;
		m->pages[i].faulted = 1;
		m->pages[i].fault = origin;
	}
	return new_pages;
}

static int space_matches(u32 id, const struct model *m)
{
	u64 mapped = 0, addr = 0;
	struct ledger_interval iv;
	u32 i = 0, k;

	while (ledger_next(l, id, addr, &iv)) {
		/* Invariant 1. */
		CHECK(iv.start >= addr && iv.start < iv.end && iv.gen && iv.start >= BASE);
		k = (u32)((iv.start - BASE) / PG);
		for (; i < k; i++)
			CHECK(!m->pages[i].interval && !ledger_page(l, id, BASE + i * PG));
		CHECK(i == 0 || m->pages[i].interval != m->pages[i - 1].interval);
		for (; BASE + i * PG < iv.end; i++) {
			CHECK(i < WINDOW && m->pages[i].interval == m->pages[k].interval);
			/* Invariant 4: no page outlives its interval, and 2: origins stay. */
			CHECK(m->pages[i].origin == iv.origin);
			CHECK(ledger_page(l, id, BASE + i * PG) == m->pages[i].fault);
		}
		mapped += iv.end - iv.start;
		addr = iv.end;
	}
	for (; i < WINDOW; i++)
		CHECK(!m->pages[i].interval && !ledger_page(l, id, BASE + i * PG));
	/* Invariant 5. */
	CHECK(mapped == ledger_mapped_bytes(l, id));
	CHECK(mapped == m->ever_mapped - m->unmapped);
	return 1;
}

/* Invariant 2: a generation seen before the event and after it is the same interval. */
static int generations_are_unedited(u32 id, const struct ledger_interval *old, u32 n)
{
	struct ledger_interval iv;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!ledger_find(l, id, old[i].start, &iv) || iv.gen != old[i].gen)
			continue;
		CHECK(iv.start == old[i].start && iv.end == old[i].end);
		CHECK(iv.origin == old[i].origin);
	}
	for (i = 0; ledger_next(l, id, i ? iv.end : 0, &iv); i++) {
		u32 k;

		for (k = 0; k < n; k++)
			CHECK(iv.gen != old[k].gen || iv.start == old[k].start);
	}
	return 1;
}

static u32 length_at(u32 at)
{
	u32 max = WINDOW - at, n = 1 + rnd(rnd(3) ? 40 : WINDOW);

	return n < max ? n : max;
}

static int step_remap(u32 id, struct model *m, int *ret_err)
{
	u32 a = rnd(WINDOW), n = length_at(a), to = rnd(4) ? rnd(WINDOW) : a;
	u32 to_n = rnd(2) ? length_at(to) : n, origin = 1 + rnd(50);
	int stay = !rnd(4), bad;

	if (!rnd(3))
		to = (a + 512) % WINDOW;
	if (to + to_n > WINDOW)
		to_n = WINDOW - to;
	if (!rnd(10))
		n = 0;
	bad = n && a != to && a < to + to_n && to < a + n;
	if (stay && (a == to || n != to_n))
		bad = 1;
	*ret_err =
		ledger_remap(l, id, BASE + a * PG, n * PG, BASE + to * PG, to_n * PG, stay, origin);
	if (bad || *ret_err) {
		CHECK(*ret_err == (bad ? -EINVAL : -ENOMEM));
		return 1;
	}
	model_remap(m, a, n, to, to_n, stay, origin);
	return 1;
}

static int step_fault(u32 id, struct model *m, int *ret_err)
{
	u32 at = rnd(WINDOW), origin = rnd(4), order, got, pages, n = 1 + rnd(8);

	for (; n && at < WINDOW; n--, at++) {
		order = rnd(20) ? rnd(20) ? 0 : 4 : 9 + rnd(2);
		*ret_err = ledger_fault(l, id, BASE + at * PG + rnd(4096), order, origin, &got,
					&pages);
		if (*ret_err) {
			CHECK(*ret_err == -ENOMEM);
			return 1;
		}
		CHECK(got == m->pages[at].origin);
		CHECK(pages == model_fault(m, at, order, origin));
	}
	return 1;
}

static int step_space(u32 id, struct model *m, int *ret_err)
{
	u32 parent = rnd(SPACES + 1), i;

	if (m->alive) {
		*ret_err = 0;
		CHECK(ledger_space_new(l, id, 0) == -EEXIST);
		if (rnd(3))
			return 1;
		CHECK(!ledger_space_end(l, id));
		memset(m, 0, sizeof(*m));
		return space_matches(id, m);
	}
	*ret_err = ledger_space_new(l, id, parent);
	if (parent && !models[parent - 1].alive) {
		CHECK(*ret_err == -ENOENT);
		return 1;
	}
	if (*ret_err)
		return 1;
	if (parent)
		*m = models[parent - 1];
	m->alive = 1;
	for (i = 0; i < SPACES; i++)
		if (models[i].alive && !space_matches(i + 1, &models[i]))
			return 0;
	return 1;
}

static int step(u32 id, struct model *m, int *ret_err)
{
	u32 a = rnd(WINDOW), n = length_at(a), origin = 1 + rnd(50), what = rnd(100), i;
	u64 start = BASE + a * PG, end = start + n * PG;

	if (what < 2 || !m->alive)
		return step_space(id, m, ret_err);
	if (what < 60)
		return step_fault(id, m, ret_err);
	if (what < 70)
		return step_remap(id, m, ret_err);
	if (what < 80) {
		*ret_err = ledger_map(l, id, start, end, origin);
		if (!*ret_err)
			model_map(m, a, a + n, origin);
	} else if (what < 90) {
		*ret_err = ledger_unmap(l, id, start, end);
		if (!*ret_err)
			model_clear(m, a, a + n);
	} else {
		*ret_err = ledger_discard(l, id, start, end);
		for (i = a; !*ret_err && i < a + n; i++)
			m->pages[i].fault = 0;
	}
	CHECK(!*ret_err || *ret_err == -ENOMEM);
	return 1;
}

static int random_stream(u64 seed, u32 steps, int starve)
{
	static struct ledger_interval old[WINDOW];
	u32 i, s, n;
	int err;

	memset(models, 0, sizeof(models));
	ledger_space_end(l, 1);
	rng = seed;
	for (i = 0; i < steps; i++) {
		u64 addr = 0;

		s = rnd(SPACES);
		for (n = 0; i % 8 == 0 && ledger_next(l, s + 1, addr, &old[n]); n++)
			addr = old[n].end;
		if (starve && rnd(2))
			l->heap.limit = l->heap.bytes + rnd(3000);
		if (!step(s + 1, &models[s], &err))
			return 0;
		l->heap.limit = ~0ull;
		if (i % 8 == 0 && models[s].alive && !generations_are_unedited(s + 1, old, n))
			return 0;
		if ((err == -ENOMEM || i % 32 == 0) && models[s].alive &&
		    !space_matches(s + 1, &models[s]))
			return 0;
	}
	for (s = 0; s < SPACES; s++)
		if (!space_matches(s + 1, &models[s]))
			return 0;
	for (s = 0; s < SPACES; s++)
		ledger_space_end(l, s + 1);
	CHECK(ledger_memory(l) == sizeof(struct ledger));
	return 1;
}

static int random_streams_match_the_model(void)
{
	u64 seed;
	size_t at;

	for (seed = seed_arg; seed < seed_arg + 4; seed++)
		if (!random_stream(seed, 60000, 0)) {
			at = strlen(why);
			snprintf(why + at, sizeof(why) - at, " seed %llu", seed);
			return 0;
		}
	return 1;
}

static int failed_allocations_change_nothing(void)
{
	return random_stream(seed_arg + 1000, 30000, 1);
}

static u64 bench_one(u32 what)
{
	const u64 pages = 64 * GIB / PG;
	u64 i, before, start = 0x600000000000ull;

	ledger_space_new(l, 1, 0);
	before = ledger_memory(l);
	ledger_map(l, 1, start, start + 64 * GIB, 7);
	for (i = 0; what == 1 && i < pages / 100; i++)
		fault(1, start + ((u64)rnd(1u << 30) % pages) * PG, 0, 1 + rnd(3));
	for (i = 0; what == 2 && i < pages; i++)
		fault(1, start + i * PG, 0, 5);
	before = ledger_memory(l) - before;
	ledger_space_end(l, 1);
	return before;
}

static int bench(void)
{
	u64 none, some, all;

	if (ledger_new(&l))
		return 1;
	none = bench_one(0);
	some = bench_one(1);
	all = bench_one(2);
	printf("bench 64 GiB reserved: untouched %llu B, 1%% scattered %llu B (%.1f B/page), "
	       "all faulted %llu B\n",
	       none, some, (double)some / (64 * GIB / PG / 100), all);
	ledger_free(&l);
	return 0;
}

static const struct test tests[] = {
	TEST(munmap_middle_leaves_two_intervals_with_same_origin),
	TEST(survivors_of_a_split_keep_the_faulted_memory),
	TEST(map_fixed_replaces),
	TEST(remap_grow_in_place_gives_the_tail_the_new_origin),
	TEST(remap_move_takes_pages_and_origins_along),
	TEST(remap_dontunmap_keeps_the_old_range_without_pages),
	TEST(remap_shrink_drops_the_tail),
	TEST(remap_of_length_zero_duplicates),
	TEST(discarded_page_faulted_again_is_not_new),
	TEST(huge_fault_is_clipped_to_its_interval),
	TEST(fork_is_independent_after_changes),
	TEST(a_thousand_forks_of_100k_intervals_are_cheap),
	TEST(reserving_64_gib_and_unmapping_costs_constant_memory),
	TEST(ledger_memory_returns_to_the_start_after_frees),
	TEST(bad_arguments_are_refused),
	TEST(random_streams_match_the_model),
	TEST(failed_allocations_change_nothing),
};

static int new_ledger(void)
{
	return ledger_new(&l) || ledger_space_new(l, 1, 0);
}

static void free_ledger(void)
{
	ledger_free(&l);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "bench"))
		return bench();
	seed_arg = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	return RUN(tests, new_ledger, free_ledger);
}
