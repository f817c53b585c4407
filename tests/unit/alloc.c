/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of the ledger's allocations: named cases, then random streams of operations against a
 * model that knows every 16 bytes of a small window and a list of what is allocated.
 * ./alloc [seed] tests; ./alloc bench prints what live allocations cost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/ledger/ledger.h"
#include "lib/ledger/space.h"
#include "tests/unit/check.h"

#define PG     MP_PAGE_SIZE
#define BASE   0x7f0000000000ull
#define GRAIN  16u
#define WINDOW 4096u /* grains: 16 pages */
#define SPACES 3u
#define LIVE   1024u

static u64 seed_arg;
static struct ledger *l;

static int is_piece(u64 at, enum ledger_state state, u32 origin, u64 end)
{
	struct ledger_piece p;

	ledger_piece(l, 1, at, BASE + 64 * PG, &p);
	return p.state == state && p.origin == origin && p.end == end;
}

static int a_byte_is_live_then_freed_then_another_ones(void)
{
	CHECK(!ledger_map(l, 1, BASE, BASE + 64 * PG, 7));
	CHECK(!ledger_alloc(l, 1, 0, BASE + 16, 100, 3, 10));
	CHECK(is_piece(BASE, LEDGER_NEVER, 0, BASE + 16));
	CHECK(is_piece(BASE + 16, LEDGER_LIVE, 3, BASE + 116));
	CHECK(is_piece(BASE + 116, LEDGER_NEVER, 0, BASE + 64 * PG));
	CHECK(ledger_alloc_end(l, 1, 0, BASE + 16, 99) == 1);
	CHECK(is_piece(BASE + 16, LEDGER_FREED, 3, BASE + 116));
	CHECK(!ledger_alloc(l, 1, 0, BASE + 16, 50, 4, 11));
	CHECK(is_piece(BASE + 16, LEDGER_LIVE, 4, BASE + 66));
	CHECK(is_piece(BASE + 66, LEDGER_FREED, 3, BASE + 116));
	CHECK(ledger_alloc_end(l, 1, 0, BASE + 16, 99) == 1);
	CHECK(is_piece(BASE + 16, LEDGER_FREED, 4, BASE + 66));
	CHECK(ledger_alloc_end(l, 1, 0, BASE + 16, 99) == 0);
	return 1;
}

static int a_realloc_does_not_end_what_was_born_after_it_began(void)
{
	CHECK(!ledger_alloc(l, 1, 0, BASE, 64, 3, 10));
	/* Another thread got the place that realloc, entered at 11, had left. */
	CHECK(!ledger_alloc(l, 1, 0, BASE, 32, 4, 12));
	CHECK(ledger_alloc_end(l, 1, 0, BASE, 11) == 0);
	CHECK(is_piece(BASE, LEDGER_LIVE, 4, BASE + 32));
	CHECK(is_piece(BASE + 32, LEDGER_FREED, 3, BASE + 64));
	return 1;
}

static int a_pool_lies_on_a_block_and_the_block_outlives_it(void)
{
	CHECK(!ledger_alloc(l, 1, 0, BASE, 1000, 3, 10));
	CHECK(!ledger_alloc(l, 1, 1, BASE, 100, 4, 11));
	CHECK(!ledger_alloc(l, 1, 1, BASE + 200, 100, 5, 12));
	CHECK(is_piece(BASE, LEDGER_LIVE, 4, BASE + 100));
	CHECK(is_piece(BASE + 100, LEDGER_LIVE, 3, BASE + 200));
	CHECK(ledger_alloc_end(l, 1, 1, BASE, 99) == 1);
	CHECK(is_piece(BASE, LEDGER_LIVE, 3, BASE + 200));
	CHECK(ledger_alloc_end(l, 1, 0, BASE, 99) == 1);
	CHECK(is_piece(BASE + 200, LEDGER_LIVE, 5, BASE + 300));
	return 1;
}

static int unmapped_bytes_are_nobodys_and_forgotten(void)
{
	struct ledger_piece p;

	CHECK(!ledger_map(l, 1, BASE, BASE + 9 * PG, 7));
	CHECK(!ledger_alloc(l, 1, 0, BASE + PG - 50, 100, 3, 10));
	CHECK(!ledger_alloc(l, 1, 0, BASE + 2 * PG - 50, 100, 4, 11));
	CHECK(!ledger_alloc(l, 1, 0, BASE + 3 * PG, 100, 5, 12));
	CHECK(ledger_alloc_end(l, 1, 0, BASE + 3 * PG, 99) == 1);
	CHECK(!ledger_unmap(l, 1, BASE + PG, BASE + 2 * PG));
	CHECK(is_piece(BASE + PG - 50, LEDGER_LIVE, 3, BASE + PG));
	CHECK(is_piece(BASE + PG, LEDGER_NEVER, 0, BASE + 3 * PG));
	CHECK(!ledger_claim(l, 1, BASE, BASE + PG, 8));
	CHECK(is_piece(BASE + PG - 50, LEDGER_LIVE, 3, BASE + PG));
	CHECK(!ledger_doubt_freed(l, 1, BASE + 3 * PG, BASE + 4 * PG));
	ledger_piece(l, 1, BASE + 3 * PG, BASE + 9 * PG, &p);
	CHECK(p.state == LEDGER_FREED && p.origin == 5 && !p.birth);
	CHECK(!ledger_forget_freed(l, 1, BASE + 3 * PG, BASE + 4 * PG));
	CHECK(!ledger_has_allocs(l, 1, BASE + PG, BASE + 9 * PG));
	return 1;
}

static int a_thousand_forks_of_100k_allocations_are_cheap(void)
{
	u64 i, before;

	for (i = 0; i < 100000; i++)
		CHECK(!ledger_alloc(l, 1, 0, BASE + i * 64, 48, 1 + i % 7, i + 1));
	/* What 64 bytes a live allocation leave to malloc(3) itself. */
	CHECK(ledger_memory(l) < 100000 * 57);
	before = ledger_memory(l);
	for (i = 0; i < 1000; i++) {
		CHECK(!ledger_space_new(l, 2 + (u32)i, 1));
		CHECK(ledger_alloc_end(l, 2 + (u32)i, 0, BASE + i * 64, ~0ull) == 1);
	}
	CHECK(ledger_memory(l) - before < 1000 * 8192);
	CHECK(is_piece(BASE, LEDGER_LIVE, 1, BASE + 48));
	return 1;
}

static int what_is_freed_again_and_again_does_not_grow(void)
{
	u64 i, before = 0;

	for (i = 0; i < 20000; i++) {
		CHECK(!ledger_alloc(l, 1, 0, BASE + i % 100 * 64, 64, 3, i + 1));
		CHECK(ledger_alloc_end(l, 1, 0, BASE + i % 100 * 64, ~0ull) == 1);
		if (i == 200)
			before = ledger_memory(l);
	}
	CHECK(ledger_memory(l) <= before);
	CHECK(is_piece(BASE, LEDGER_FREED, 3, BASE + 6400));
	return 1;
}

static int bad_arguments_are_refused(void)
{
	CHECK(ledger_alloc(l, 1, LEDGER_FAMILIES, BASE, 1, 3, 1) == -EINVAL);
	CHECK(ledger_alloc(l, 1, 0, ~0ull - 5, 10, 3, 1) == -EINVAL);
	CHECK(ledger_alloc(l, 1, 0, 1ull << 57, 10, 3, 1) == -EINVAL);
	CHECK(ledger_alloc(l, 9, 0, BASE, 10, 3, 1) == -ENOENT);
	CHECK(!ledger_alloc(l, 1, 0, BASE, 0, 3, 1));
	CHECK(is_piece(BASE, LEDGER_NEVER, 0, BASE + 64 * PG));
	CHECK(ledger_alloc_end(l, 1, 0, BASE, ~0ull) == 0);
	CHECK(ledger_alloc_end(l, 9, 0, BASE, ~0ull) == -ENOENT);
	return 1;
}

/* ---- the model ---- */

struct block {
	u32 family, start, end, origin; /* grains */
	u64 birth;
};

struct model {
	int alive;
	u32 nr;
	struct block live[LIVE];
	u32 origin[WINDOW]; /* freed; 0 none */
	u64 birth[WINDOW];
};

static struct model models[SPACES];
static u64 rng, now;

static u32 rnd(u32 below)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(rng >> 33) % below;
}

static void model_end(struct model *m, u32 i, u64 birth)
{
	const struct block b = m->live[i];
	u32 g;

	for (g = b.start; g < b.end; g++) {
		m->origin[g] = b.origin;
		m->birth[g] = birth;
	}
	m->live[i] = m->live[--m->nr];
}

static void model_alloc(struct model *m, const struct block *b)
{
	u32 i;

	for (i = 0; i < m->nr;)
		if (m->live[i].family == b->family && m->live[i].start < b->end &&
		    b->start < m->live[i].end)
			model_end(m, i, 0);
		else
			i++;
	m->live[m->nr++] = *b;
}

static void model_unmap(struct model *m, u32 a, u32 b)
{
	u32 i;

	for (i = 0; i < m->nr;) {
		struct block *k = &m->live[i];

		if (k->start < a && k->end > a)
			k->end = a;
		if (k->start >= a && k->start < b)
			m->live[i] = m->live[--m->nr];
		else
			i++;
	}
	memset(m->origin + a, 0, (b - a) * sizeof(m->origin[0]));
}

static const struct block *model_live(const struct model *m, u32 at)
{
	const struct block *best = NULL;
	u32 i;

	for (i = 0; i < m->nr; i++)
		if (m->live[i].start <= at && at < m->live[i].end &&
		    (!best || m->live[i].family > best->family))
			best = &m->live[i];
	return best;
}

static int matches(u32 id, const struct model *m)
{
	u64 addr, end = BASE + WINDOW * GRAIN;
	const struct block *b;
	struct ledger_piece p;
	u32 g;

	for (addr = BASE; addr < end; addr = p.end) {
		ledger_piece(l, id, addr, end, &p);
		CHECK(p.end > addr && p.end <= end && (p.end - BASE) % GRAIN == 0);
		for (g = (u32)((addr - BASE) / GRAIN); BASE + g * GRAIN < p.end; g++) {
			b = model_live(m, g);
			if (b) {
				CHECK(p.state == LEDGER_LIVE && p.origin == b->origin);
				CHECK(p.birth == b->birth);
			} else if (m->origin[g]) {
				CHECK(p.state == LEDGER_FREED && p.origin == m->origin[g]);
				/* Of neighbours the weaker knowledge counts. */
				CHECK(p.birth <= m->birth[g]);
			} else {
				CHECK(p.state == LEDGER_NEVER);
			}
		}
	}
	return 1;
}

static int step(u32 id, struct model *m)
{
	u32 what = rnd(100), a = rnd(WINDOW / 256) * 256, n = 256 * (1 + rnd(3)), g;
	struct block b = {.family = rnd(4) == 0, .start = rnd(WINDOW), .origin = 1 + rnd(5)};
	u64 start, end, until;
	u32 from = rnd(SPACES);
	int got, want = 0;

	b.end = b.start + 1 + rnd(rnd(20) ? 12 : 900);
	b.end = b.end < WINDOW ? b.end : WINDOW;
	b.birth = ++now;
	n = a + n < WINDOW ? n : WINDOW - a;
	start = BASE + a * GRAIN;
	end = start + n * GRAIN;
	if (!m->alive || what < 1) {
		ledger_space_end(l, id);
		if (!models[from].alive || from + 1 == id) {
			memset(m, 0, sizeof(*m));
			CHECK(!ledger_space_new(l, id, 0));
			CHECK(!ledger_map(l, id, BASE, BASE + WINDOW * GRAIN, 9));
		} else {
			*m = models[from];
			CHECK(!ledger_space_new(l, id, from + 1));
		}
		m->alive = 1;
	} else if (what < 55 && m->nr < LIVE - 1) {
		model_alloc(m, &b);
		CHECK(!ledger_alloc(l, id, b.family, BASE + b.start * GRAIN,
				    (b.end - b.start) * GRAIN, b.origin, b.birth));
	} else if (what < 90 && m->nr) {
		g = rnd(m->nr);
		until = rnd(10) ? now : m->live[g].birth - 1;
		want = m->live[g].birth <= until;
		got = ledger_alloc_end(l, id, m->live[g].family, BASE + m->live[g].start * GRAIN,
				       until);
		CHECK(got == want);
		if (want)
			model_end(m, g, m->live[g].birth);
	} else if (what < 94) {
		CHECK(!ledger_unmap(l, id, start, end) && !ledger_claim(l, id, start, end, 9));
		model_unmap(m, a, a + n);
	} else if (what < 97) {
		CHECK(!ledger_forget_freed(l, id, start, end));
		memset(m->origin + a, 0, n * sizeof(m->origin[0]));
	} else {
		CHECK(!ledger_doubt_freed(l, id, start, end));
		memset(m->birth + a, 0, n * sizeof(m->birth[0]));
	}
	return 1;
}

static int random_streams_match_the_model(void)
{
	u32 i, s, seed;

	for (seed = 0; seed < 4; seed++) {
		rng = seed_arg + seed;
		memset(models, 0, sizeof(models));
		for (s = 1; s <= SPACES; s++)
			ledger_space_end(l, s);
		for (i = 0; i < 20000; i++) {
			s = rnd(SPACES);
			if (!step(s + 1, &models[s]))
				return 0;
			if (i % 16 == 0 && !matches(s + 1, &models[s]))
				return 0;
		}
		for (s = 0; s < SPACES; s++) {
			CHECK(matches(s + 1, &models[s]));
			ledger_space_end(l, s + 1);
		}
		CHECK(ledger_memory(l) == sizeof(struct ledger));
	}
	return 1;
}

/* An event that fails for want of memory has changed nothing. */
static int failed_events_change_nothing(void)
{
	static struct model m;
	u32 i, k, failed = 0;

	rng = seed_arg + 99;
	memset(&m, 0, sizeof(m));
	CHECK(!ledger_map(l, 1, BASE, BASE + WINDOW * GRAIN, 9));
	for (i = 0; i < 3000; i++) {
		struct block b = {.start = rnd(WINDOW - 40), .origin = 1 + rnd(5), .birth = ++now};

		b.end = b.start + 1 + rnd(30);
		l->heap.limit = l->heap.bytes + rnd(400);
		if (m.nr && (m.nr >= LIVE - 1 || rnd(2))) {
			k = rnd(m.nr);
			if (ledger_alloc_end(l, 1, 0, BASE + m.live[k].start * GRAIN, now) == 1)
				model_end(&m, k, m.live[k].birth);
			else
				failed++;
		} else if (!ledger_alloc(l, 1, 0, BASE + b.start * GRAIN, (b.end - b.start) * GRAIN,
					 b.origin, b.birth)) {
			model_alloc(&m, &b);
		} else {
			failed++;
		}
		l->heap.limit = ~0ull;
		if (i % 8 == 0 && !matches(1, &m))
			return 0;
	}
	CHECK(failed > 100);
	return 1;
}

static int bench(void)
{
	const u32 n = 1000000;
	struct timespec a, b;
	u64 i, live;

	if (ledger_new(&l) || ledger_space_new(l, 1, 0))
		return 1;
	live = ledger_memory(l);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < n; i++)
		ledger_alloc(l, 1, 0, BASE + i * 2654435761u % n * 64, 48, 1 + i % 100, i + 1);
	live = ledger_memory(l) - live;
	for (i = 0; i < n; i++)
		ledger_alloc_end(l, 1, 0, BASE + i * 40503u % n * 64, ~0ull);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("bench %u live allocations: %.1f B each; %.2f us an event\n", n, (double)live / n,
	       ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3) /
		       (2.0 * n));
	ledger_free(&l);
	return 0;
}

static const struct test tests[] = {
	TEST(a_byte_is_live_then_freed_then_another_ones),
	TEST(a_realloc_does_not_end_what_was_born_after_it_began),
	TEST(a_pool_lies_on_a_block_and_the_block_outlives_it),
	TEST(unmapped_bytes_are_nobodys_and_forgotten),
	TEST(a_thousand_forks_of_100k_allocations_are_cheap),
	TEST(what_is_freed_again_and_again_does_not_grow),
	TEST(bad_arguments_are_refused),
	TEST(random_streams_match_the_model),
	TEST(failed_events_change_nothing),
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
