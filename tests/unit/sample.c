/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of what sampled allocations say: a program is simulated with a book of its own, the
 * adapter's sampler announces a few of its allocations, and the report's estimates are compared
 * with the book, over many seeds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/adapter/sampler.h"
#include "lib/capture/announced.h"
#include "lib/join/live.h"
#include "lib/join/replay.h"
#include "tests/unit/check.h"

#define HEAP	 0x7f0000000000ull
#define INTERVAL (16u << 10)
#define SEEDS	 1000
#define SITES	 4
#define PAGES	 2600ull
#define HOLE	 5 /* every fifth page is not resident */

static struct replay *p;
static struct report *r;
static u64 seq;

static const char *no_text(const void *ctx, u32 id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

static void put(u16 type, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[128];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .space = 1,
			 .seq = ++seq,
			 .time_ns = seq}};

	memcpy(rec.body, body, len);
	if (replay_feed(p, &rec.hdr))
		abort();
}

/* ---- the program and its book ---- */

/* Small ones of one size, of many sizes, ones larger than the interval, and few. */
static u64 size_of(u32 site, u32 i)
{
	static const u64 same[] = {64, 0, 40000, 1000};

	return site == 1 ? 16 + i * 37 % 4000 : same[site];
}

static const u32 count_of[SITES] = {16384, 250, 60, 160};

struct book {
	u64 reserved, resident;
};

static u64 resident_in(u64 start, u64 end)
{
	u64 at, stop, sum = 0;

	for (at = start; at < end; at = stop) {
		stop = at / MP_PAGE_SIZE * MP_PAGE_SIZE + MP_PAGE_SIZE;
		stop = stop < end ? stop : end;
		if ((at - HEAP) / MP_PAGE_SIZE % HOLE)
			sum += stop - at;
	}
	return sum;
}

static void allocate(struct sampler *s, u32 site, u64 at, u64 size, int lives)
{
	struct mp_ev_sample ev = {.addr = at, .bytes = size, .stack = 100 + site};
	struct mp_ev_free end = {.addr = at};

	if (sampler_lasts(s, size) || !sampler_due(s, size, INTERVAL))
		return;
	ev.weighted = sampler_weight(size, INTERVAL);
	put(MP_EV_SAMPLE, &ev, sizeof(ev));
	if (!lives)
		put(MP_EV_FREE, &end, sizeof(end));
}

static void run_program(u64 seed, struct book *book)
{
	u32 done[SITES] = {0}, site, left = 0;
	struct sampler s = {0};
	u64 at = HEAP;

	sampler_start(&s, seed, INTERVAL);
	memset(book, 0, SITES * sizeof(*book));
	for (site = 0; site < SITES; site++)
		left += count_of[site];
	/* The sites take turns, so that pages hold blocks of several. */
	for (site = 0; left; site = (site + 1) % SITES) {
		u32 i = done[site], lives = i % 3 != 1;
		u64 size = size_of(site, i);

		if (i == count_of[site])
			continue;
		done[site]++;
		left--;
		allocate(&s, site, at, size, (int)lives);
		if (lives) {
			book[site].reserved += size;
			book[site].resident += resident_in(at, at + size);
		}
		at += (size + 15) / 16 * 16;
	}
	if (at > HEAP + PAGES * MP_PAGE_SIZE)
		abort();
}

static void take_picture(void)
{
	struct mp_ev_walk w = {.id = 1, .provider = MP_WALK_PAGEMAP};
	struct mp_ev_vma v = {.start = HEAP,
			      .end = HEAP + PAGES * MP_PAGE_SIZE,
			      .flags = MP_VMA_READ | MP_VMA_WRITE,
			      .walk = 1};
	struct mp_ev_check c = {.walk = 1, .rss = PAGES / HOLE * (HOLE - 1) * MP_PAGE_SIZE};
	u64 i;

	put(MP_EV_WALK, &w, sizeof(w));
	put(MP_EV_CHECK, &c, sizeof(c));
	put(MP_EV_VMA, &v, sizeof(v));
	for (i = 0; i < PAGES; i += HOLE) {
		struct mp_ev_run run = {.start = HEAP + (i + 1) * MP_PAGE_SIZE,
					.pages = HOLE - 1,
					.flags = MP_PAGE_RESIDENT,
					.mapcount = 1};

		put(MP_EV_RUN, &run, sizeof(run));
	}
	w.end = c.when = 1;
	put(MP_EV_CHECK, &c, sizeof(c));
	put(MP_EV_WALK, &w, sizeof(w));
}

/* Simulates, and makes a report. */
static int play(u64 seed, struct book *book)
{
	const struct mp_ev_space born = {.tgid = 101, .cause = MP_SPACE_EXEC};
	const struct mp_ev_map heap = {
		.start = HEAP, .end = HEAP + PAGES * MP_PAGE_SIZE, .stack = 99, .kind = MP_MAP_BRK};
	const struct mp_ev_sampler sampler = {.interval = INTERVAL};

	join_free(&r);
	replay_free(&p);
	seq = 0;
	if (replay_new(OWNER_AUTO, no_text, NULL, &p))
		abort();
	p->r->no_alloc = NULL;
	put(MP_EV_SPACE, &born, sizeof(born));
	put(MP_EV_SAMPLER, &sampler, sizeof(sampler));
	put(MP_EV_MAP, &heap, sizeof(heap));
	run_program(seed, book);
	take_picture();
	return replay_step(p, ~0ull) || replay_report(p, &r);
}

/* NULL: none of the site's was sampled. */
static const struct row *find(u32 stack)
{
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].stack == stack)
			return &r->rows[i];
	return NULL;
}

/* ---- what must hold ---- */

static int holds(const struct cost *c, u64 truth)
{
	return cost_lo(c) <= (s64)truth && (s64)truth <= cost_hi(c);
}

/* Of a thousand independent intervals at 95% so many are right but in one of a hundred cases, by
 * Clopper and Pearson. */
static int is_covered(int hits)
{
	return hits >= 931 && hits <= 967;
}

static int estimates_are_unbiased_and_their_bounds_hold(void)
{
	struct book book[SITES];
	double sum[SITES] = {0}, squares[SITES] = {0}, off, error;
	int hits[SITES] = {0}, hits_reserved[SITES] = {0}, seed;
	u32 site;

	for (seed = 1; seed <= SEEDS; seed++) {
		CHECK(!play((u64)seed, book));
		for (site = 0; site < SITES; site++) {
			const struct row *row = find(100 + site);
			double v = row ? (double)cost_value(&row->cost[COST_RESIDENT]) : 0;

			sum[site] += v;
			squares[site] += v * v;
			if (!row)
				continue;
			CHECK(row->kind == ORIGIN_MALLOC && row->cost[COST_RESERVED].sampled);
			CHECK(!row->cost[COST_RESIDENT].exact && !row->cost[COST_RESERVED].exact);
			CHECK(!row->cost[COST_TOUCHED].known && !row->cost[COST_FREED].known);
			hits[site] += holds(&row->cost[COST_RESIDENT], book[site].resident);
			hits_reserved[site] +=
				holds(&row->cost[COST_RESERVED], book[site].reserved);
		}
	}
	for (site = 0; site < SITES; site++) {
		sum[site] /= SEEDS;
		error = sqrt((squares[site] / SEEDS - sum[site] * sum[site]) / SEEDS);
		off = sum[site] - (double)book[site].resident;
		printf("     site %u: truth %llu, mean of estimates %+.1f%%, resident within "
		       "bounds "
		       "%d, reserved %d of %d\n",
		       site, (unsigned long long)book[site].resident,
		       100 * off / (double)book[site].resident, hits[site], hits_reserved[site],
		       SEEDS);
		CHECK(fabs(off) < 3.3 * error); /* one of a thousand */
		CHECK(is_covered(hits[site]) && is_covered(hits_reserved[site]));
	}
	return 1;
}

static int rows_add_up_to_what_the_mappings_have(void)
{
	struct book book[SITES];
	s64 sums[COST_MAX];
	size_t i;
	int seed, c;

	for (seed = 1; seed <= 20; seed++) {
		CHECK(!play((u64)seed, book));
		memset(sums, 0, sizeof(sums));
		for (i = 0; i < r->nr_rows; i++)
			for (c = 0; c < COST_MAX; c++)
				sums[c] += cost_value(&r->rows[i].cost[c]);
		CHECK(sums[COST_RESIDENT] == (s64)(PAGES / HOLE * (HOLE - 1) * MP_PAGE_SIZE));
		CHECK(sums[COST_PRIVATE] == sums[COST_RESIDENT] &&
		      sums[COST_LIVE] == sums[COST_RESIDENT]);
		CHECK(sums[COST_GROWN] == sums[COST_RESIDENT]);
		CHECK(sums[COST_RESERVED] == (s64)(PAGES * MP_PAGE_SIZE));
		/* All of it is known, whoever has it. */
		CHECK(r->total[COST_RESIDENT].exact == sums[COST_RESIDENT]);
		CHECK(r->check[COST_RESIDENT].residual == 0);
		CHECK(r->check[COST_RESIDENT].status == CHECK_OK);
		CHECK(cost_absent(r, COST_FREED) && !r->total[COST_FREED].known);
	}
	return 1;
}

static int bounds_of_groups_are_computed(void)
{
	struct book book[SITES];
	s64 lo = 0, hi = 0, most, least;
	struct cost c = {0};
	size_t i;

	CHECK(!play(7, book));
	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].kind == ORIGIN_MALLOC) {
			lo += cost_lo(&r->rows[i].cost[COST_RESIDENT]);
			hi += cost_hi(&r->rows[i].cost[COST_RESIDENT]);
		}
	for (i = 0; i < r->nr_rows; i++)
		r->rows[i].name = r->rows[i].kind == ORIGIN_MALLOC ? "all" : "heap";
	CHECK(!join_group(r, "function"));
	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].kind == ORIGIN_MALLOC)
			c = r->rows[i].cost[COST_RESIDENT];
	least = cost_lo(&c);
	most = cost_hi(&c);
	CHECK(least > lo && most < hi);
	CHECK(least <= cost_value(&c) && cost_value(&c) <= most);
	return 1;
}

static int every_call_is_announced_on_request(void)
{
	struct sampler s = {0};
	int i;

	sampler_start(&s, 1, 1);
	for (i = 0; i < 100; i++)
		CHECK(!sampler_lasts(&s, (u64)i) && sampler_due(&s, (u64)i, 1));
	CHECK(sampler_weight(77, 1) == 77);
	return 1;
}

static int weights_are_the_inverse_of_the_chance(void)
{
	static const u64 sizes[] = {1, 16, 1000, 16384, 65536, 1 << 20};
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double n = (double)sizes[i], w = (double)sampler_weight(sizes[i], INTERVAL);

		CHECK(fabs(w * -expm1(-n / INTERVAL) - n) <= n * 1e-3 + 0.5);
		CHECK(sampler_weight(sizes[i], INTERVAL) >= sizes[i]);
	}
	return 1;
}

static int static_probes_are_read(void)
{
	u64 cookie, one = MP_USDT_THERE | MP_USDT_LOG(3);

	CHECK(!announced_args("", &cookie) && !cookie);
	CHECK(!announced_args("8@%rdi 8@%rsi 8@%rdx", &cookie));
	CHECK(cookie == ((one | 5) | (one | 4) << MP_USDT_BITS | (one | 3) << 2 * MP_USDT_BITS));
	CHECK(!announced_args("-4@%r15d", &cookie));
	CHECK(cookie == (MP_USDT_THERE | MP_USDT_LOG(2) | MP_USDT_SIGNED | 15));
	CHECK(!announced_args("8@-16(%rbp)", &cookie));
	CHECK(cookie == (one | MP_USDT_MEMORY | 6 | (0xff0ull << MP_USDT_OFFSET)));
	CHECK(announced_args("8@$5", &cookie) && announced_args("8@%xmm0", &cookie));
	CHECK(announced_args("3@%rdi", &cookie) && announced_args("8@9999(%rsp)", &cookie));
	CHECK(announced_args("8@8(%rsp,%rax,2)", &cookie) && announced_args("8%rdi", &cookie));
	return 1;
}

static const struct test tests[] = {
	TEST(every_call_is_announced_on_request),
	TEST(weights_are_the_inverse_of_the_chance),
	TEST(rows_add_up_to_what_the_mappings_have),
	TEST(bounds_of_groups_are_computed),
	TEST(estimates_are_unbiased_and_their_bounds_hold),
	TEST(static_probes_are_read),
};

int main(void)
{
	int failed = RUN(tests, NULL, NULL);

	join_free(&r);
	replay_free(&p);
	return failed;
}
