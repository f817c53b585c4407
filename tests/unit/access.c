/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of accessed bits in the join: what is watched, what is not any more, and how well it is
 * known what was touched. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/join/live.h"
#include "lib/join/replay.h"
#include "tests/unit/check.h"

#define PG    MP_PAGE_SIZE
#define BASE  0x7f0000000000ull /* of 2 MiB, too */
#define YOUNG MP_PAGE_YOUNG
#define HUGE  MP_PAGE_THP

static struct replay *p;
static struct report *r;
static u64 seq, clock_ns;
static u32 walk;

static const char *text(const void *ctx, u32 id)
{
	static const char *const texts[] = {NULL, "alloc", "uprobes"};

	(void)ctx;
	return id < 3 ? texts[id] : NULL;
}

static void put_at(u64 at, u16 type, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[128];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .space = type == MP_EV_ACCESSED || type == MP_EV_WINDOW ? 0 : 1,
			 .seq = at,
			 .time_ns = ++clock_ns}};

	memcpy(rec.body, body, len);
	if (replay_feed(p, &rec.hdr))
		abort();
}

static void put(u16 type, const void *body, size_t len)
{
	put_at(++seq, type, body, len);
}

static void map(u64 first, u64 pages)
{
	const struct mp_ev_map ev = {.start = BASE + first * PG,
				     .end = BASE + (first + pages) * PG,
				     .seq_entry = seq,
				     .stack = 1000};

	put(MP_EV_MAP, &ev, sizeof(ev));
}

static void unmap(u64 first, u64 pages)
{
	const struct mp_ev_unmap ev = {
		.start = BASE + first * PG, .end = BASE + (first + pages) * PG, .seq_entry = seq};

	put(MP_EV_UNMAP, &ev, sizeof(ev));
}

static void advise(u64 first, u64 pages, u32 advice)
{
	const struct mp_ev_advise ev = {
		.start = BASE + first * PG, .end = BASE + (first + pages) * PG, .advice = advice};

	put(MP_EV_ADVISE, &ev, sizeof(ev));
}

static void fault(u64 page)
{
	const struct mp_ev_fault ev = {.addr = BASE + page * PG + 8, .stack = 2000, .member = 3};

	put(MP_EV_FAULT, &ev, sizeof(ev));
}

static void alloc(u64 at, u64 bytes, u64 stack)
{
	const struct mp_ev_alloc ev = {
		.addr = BASE + at, .bytes = bytes, .seq_entry = seq, .stack = stack};

	put(MP_EV_ALLOC, &ev, sizeof(ev));
}

static void window(void)
{
	const struct mp_ev_window ev = {0};

	put_at(seq, MP_EV_WINDOW, &ev, sizeof(ev));
}

struct shown {
	u64 first;
	u32 pages, flags;
};

/* A picture of an object of 4096 pages, or of what was mapped; runs end with one of no pages. */
static void picture(const struct shown *s, u32 vma_flags)
{
	struct mp_ev_walk w = {.id = ++walk};
	struct mp_ev_vma v = {.start = BASE,
			      .end = BASE + 4096 * PG,
			      .ino = vma_flags ? 7 : 0,
			      .flags = MP_VMA_READ | MP_VMA_WRITE | vma_flags,
			      .walk = walk};
	u64 at = ++seq;

	put_at(at, MP_EV_WALK, &w, sizeof(w));
	put_at(at, MP_EV_VMA, &v, sizeof(v));
	for (; s->pages; s++) {
		const struct mp_ev_run run = {.start = BASE + s->first * PG,
					      .pages = s->pages,
					      .flags = MP_PAGE_RESIDENT | s->flags,
					      .mapcount = 1};

		put_at(at, MP_EV_RUN, &run, sizeof(run));
	}
	w.end = 1;
	put_at(at, MP_EV_WALK, &w, sizeof(w));
}

static void show(const struct shown *s)
{
	picture(s, MP_VMA_SHMEM);
}

static void clear(u32 doubts)
{
	const struct mp_ev_clear ev = {.walk = walk, .took = 5, .doubts = doubts};

	put_at(seq, MP_EV_CLEAR, &ev, sizeof(ev));
}

static void accounted(u32 doubts)
{
	const struct mp_ev_accessed ev = {.walk = walk, .doubts = doubts};

	put_at(seq, MP_EV_ACCESSED, &ev, sizeof(ev));
}

#define SHOW(...) show((const struct shown[]){__VA_ARGS__, {0}})

static void attach(void)
{
	const struct mp_ev_space ev = {.tgid = 101, .cause = MP_SPACE_ATTACH};

	put(MP_EV_SPACE, &ev, sizeof(ev));
}

/* 64 pages are there, and watched; the recorded time begins. */
static void begin(void)
{
	attach();
	SHOW({0, 64, YOUNG});
	clear(0);
	window();
}

static int finish(u32 doubts)
{
	accounted(doubts);
	return replay_step(p, ~0ull) || replay_report(p, &r);
}

/* A column of the rows of a kind with a stack (0: none). */
static struct cost cost(enum origin_kind kind, u64 stack, enum cost_id id)
{
	struct cost c = {0};
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].kind == kind && r->rows[i].stack == stack)
			c = r->rows[i].cost[id];
	return c;
}

static int is(enum cost_id id, u64 value, u64 exact, u64 lo, u64 hi)
{
	struct cost c = cost(ORIGIN_SHMEM, 0, id);

	if (c.known && cost_value(&c) == (s64)(value * PG) && c.exact == (s64)(exact * PG) &&
	    cost_lo(&c) == (s64)(lo * PG) && cost_hi(&c) == (s64)(hi * PG))
		return 1;
	printf("%s: known %d value %lld exact %lld [%lld, %lld]\n", cost_columns[id].name, c.known,
	       (long long)cost_value(&c) / (s64)PG, (long long)c.exact / (s64)PG,
	       (long long)cost_lo(&c) / (s64)PG, (long long)cost_hi(&c) / (s64)PG);
	return 0;
}

static int undisturbed_it_is_exact(void)
{
	struct cost c;

	begin();
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!finish(0));
	CHECK(is(COST_TOUCHED, 16, 16, 16, 16));
	CHECK(is(COST_COLD, 48, 48, 48, 48));
	CHECK(is(COST_ACCESS, 16, 16, 16, 16));
	c = cost(ORIGIN_SHMEM, 0, COST_TOUCHED);
	CHECK(!cost_is_open(&c) && !r->access.doubts);
	CHECK(cost_lo(&r->total[COST_COLD]) == 48 * (s64)PG);
	CHECK(cost_hi(&r->total[COST_TOUCHED]) == 16 * (s64)PG);
	return 1;
}

static int doubts_make_bounds(void)
{
	begin();
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!finish(MP_DOUBT_RECLAIM));
	CHECK(is(COST_TOUCHED, 16, 0, 16, 64));
	CHECK(is(COST_COLD, 48, 0, 0, 48));
	CHECK(cost_lo(&r->total[COST_COLD]) == 0);
	CHECK(cost_hi(&r->total[COST_TOUCHED]) == 64 * (s64)PG);
	return 1;
}

static int a_clear_without_a_flush_is_a_doubt(void)
{
	attach();
	SHOW({0, 64, YOUNG});
	clear(MP_DOUBT_FLUSH);
	window();
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!finish(0));
	CHECK(is(COST_TOUCHED, 16, 0, 16, 64) && is(COST_COLD, 48, 0, 0, 48));
	return 1;
}

static int killed_before_it_is_known_is_a_doubt(void)
{
	begin();
	accounted(0);
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!replay_step(p, ~0ull) && !replay_report(p, &r));
	CHECK(r->access.doubts == MP_DOUBT_UNKNOWN);
	CHECK(is(COST_TOUCHED, 16, 0, 16, 64));
	return 1;
}

static int what_came_meanwhile_is_touched_by_its_fault_only(void)
{
	begin();
	fault(70);
	SHOW({0, 16, YOUNG}, {16, 48, 0}, {64, 16, YOUNG});
	CHECK(!finish(0));
	/* 15 pages around the fault may or may not have been. */
	CHECK(is(COST_TOUCHED, 17, 16, 16, 32));
	CHECK(is(COST_COLD, 48, 48, 48, 63));
	return 1;
}

static int a_watched_page_that_faults_counts_once(void)
{
	begin();
	fault(3);
	fault(3);
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!finish(0));
	CHECK(is(COST_TOUCHED, 16, 15, 15, 16));
	CHECK(is(COST_COLD, 48, 48, 48, 48));
	return 1;
}

static int advice_ends_the_watch(void)
{
	begin();
	advise(0, 4, MADV_DONTNEED);
	advise(60, 4, MADV_FREE);
	fault(1);
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!finish(0));
	CHECK(cost(ORIGIN_SHMEM, 0, COST_TOUCHED).exact == 12 * (s64)PG);
	CHECK(cost(ORIGIN_SHMEM, 0, COST_TOUCHED).inferred == (s64)PG);
	CHECK(cost(ORIGIN_SHMEM, 0, COST_COLD).exact == 44 * (s64)PG);
	/* Three came without a fault, four may have been touched before they were let go. */
	CHECK(cost(ORIGIN_SHMEM, 0, COST_TOUCHED).hi >= 20 * (s64)PG);
	CHECK(cost(ORIGIN_SHMEM, 0, COST_COLD).hi >= 48 * (s64)PG);
	return 1;
}

static int what_is_unmapped_may_have_been_touched(void)
{
	struct cost c;

	begin();
	unmap(48, 16);
	SHOW({0, 16, YOUNG}, {16, 32, 0});
	CHECK(!finish(0));
	c = cost(ORIGIN_SHMEM, 0, COST_TOUCHED);
	CHECK(c.exact == 16 * (s64)PG && cost_hi(&c) >= 32 * (s64)PG);
	CHECK(cost(ORIGIN_SHMEM, 0, COST_COLD).exact == 32 * (s64)PG);
	return 1;
}

static int what_went_unannounced_may_have_been_touched(void)
{
	begin();
	SHOW({0, 16, YOUNG}, {16, 32, 0});
	CHECK(!finish(0));
	CHECK(is(COST_TOUCHED, 16, 16, 16, 32));
	return 1;
}

static int a_new_mapping_has_nothing_of_the_old(void)
{
	begin();
	map(0, 64);
	fault(0);
	picture((const struct shown[]){{0, 64, YOUNG}, {0}}, 0);
	CHECK(!finish(0));
	CHECK(cost(ORIGIN_MMAP, 1000, COST_TOUCHED).exact == 0);
	CHECK(cost(ORIGIN_MMAP, 1000, COST_TOUCHED).inferred == (s64)PG);
	CHECK(cost(ORIGIN_MMAP, 1000, COST_COLD).exact == 0);
	CHECK(cost(ORIGIN_MMAP, 1000, COST_TOUCHED).hi >= 64 * (s64)PG);
	return 1;
}

static int a_huge_page_is_touched_somewhere(void)
{
	attach();
	SHOW({0, 1536, YOUNG | HUGE});
	clear(0);
	window();
	SHOW({0, 512, YOUNG | HUGE}, {512, 1024, HUGE});
	CHECK(!finish(0));
	CHECK(is(COST_TOUCHED, 512, 0, 1, 512));
	CHECK(is(COST_COLD, 1024, 1024, 1024, 1024));
	CHECK(r->access.huge == 512 * PG);
	return 1;
}

static int split_and_collapse_touch_nothing(void)
{
	attach();
	SHOW({0, 512, YOUNG | HUGE}, {512, 512, YOUNG});
	clear(0);
	window();
	SHOW({0, 512, YOUNG}, {512, 512, YOUNG | HUGE});
	CHECK(!finish(0));
	CHECK(is(COST_TOUCHED, 0, 0, 0, 1024));
	CHECK(is(COST_COLD, 0, 0, 0, 1024));
	return 1;
}

static int cycles_give_an_average(void)
{
	begin();
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	clear(0);
	SHOW({0, 8, 0}, {8, 16, YOUNG}, {24, 40, 0});
	clear(0);
	/* Two pictures of one cycle say the same twice. */
	SHOW({0, 8, YOUNG}, {8, 56, 0});
	SHOW({0, 8, YOUNG}, {8, 56, 0});
	CHECK(!finish(0));
	/* Between the picture and the clear of the second more may have been. */
	CHECK(r->access.doubts == MP_DOUBT_GAP);
	CHECK(is(COST_TOUCHED, 24, 0, 24, 64));
	CHECK(is(COST_COLD, 40, 0, 0, 40));
	CHECK(cost(ORIGIN_SHMEM, 0, COST_ACCESS).inferred == (16 + 16 + 8) * (s64)PG / 3);
	return 1;
}

static int a_later_cycle_watches_more(void)
{
	begin();
	SHOW({0, 64, 0}, {64, 64, YOUNG});
	clear(0);
	SHOW({0, 64, 0}, {64, 32, YOUNG}, {96, 32, 0});
	CHECK(!finish(0));
	/* In the first cycle 64 pages came, nobody knows how. */
	CHECK(is(COST_TOUCHED, 32, 0, 32, 128));
	CHECK(is(COST_COLD, 96, 0, 0, 96));
	return 1;
}

static int lost_events_are_a_doubt(void)
{
	const struct mp_ev_loss lost = {
		.count = 1, .cause = MP_LOSS_DETAIL_RING, .cls = MP_CLASS_PAGE};

	begin();
	put(MP_EV_LOSS, &lost, sizeof(lost));
	SHOW({0, 16, YOUNG}, {16, 48, 0});
	CHECK(!finish(0));
	CHECK(cost(ORIGIN_SHMEM, 0, COST_TOUCHED).exact == 0);
	CHECK(cost(ORIGIN_SHMEM, 0, COST_COLD).exact == 0);
	return 1;
}

static int who_shares_a_page_may_not_have_been_it(void)
{
	const struct mp_ev_hook hook = {.capability = 1, .provider = 2};
	struct cost c;

	put(MP_EV_HOOK, &hook, sizeof(hook));
	attach();
	map(0, 4096);
	alloc(0, PG / 2, 3001);
	alloc(PG / 2, PG / 2, 3002);
	alloc(PG, 2 * PG, 3003);
	picture((const struct shown[]){{0, 4, YOUNG}, {0}}, 0);
	clear(0);
	window();
	alloc(3 * PG, PG, 3004);
	picture((const struct shown[]){{0, 4, YOUNG}, {0}}, 0);
	CHECK(!finish(0));
	c = cost(ORIGIN_MALLOC, 3001, COST_TOUCHED);
	CHECK(!c.exact && c.inferred == (s64)PG / 2 && cost_lo(&c) == 0);
	c = cost(ORIGIN_MALLOC, 3003, COST_TOUCHED);
	CHECK(c.exact == 2 * (s64)PG);
	/* Born when the page may have been touched already. */
	c = cost(ORIGIN_MALLOC, 3004, COST_TOUCHED);
	CHECK(!c.exact && c.inferred == (s64)PG && cost_lo(&c) == 0);
	return 1;
}

static int unwatched_is_unknown(void)
{
	attach();
	SHOW({0, 64, 0});
	window();
	SHOW({0, 64, YOUNG});
	CHECK(!replay_step(p, ~0ull) && !replay_report(p, &r));
	CHECK(!cost(ORIGIN_SHMEM, 0, COST_COLD).known && cost_absent(r, COST_COLD));
	CHECK(!cost_value(&r->total[COST_TOUCHED]));
	return 1;
}

/* Nothing was read behind it. */
static int a_clear_alone_says_nothing(void)
{
	begin();
	CHECK(!finish(0));
	CHECK(!cost(ORIGIN_SHMEM, 0, COST_COLD).known);
	return 1;
}

static const struct test tests[] = {
	TEST(undisturbed_it_is_exact),
	TEST(doubts_make_bounds),
	TEST(a_clear_without_a_flush_is_a_doubt),
	TEST(killed_before_it_is_known_is_a_doubt),
	TEST(what_came_meanwhile_is_touched_by_its_fault_only),
	TEST(a_watched_page_that_faults_counts_once),
	TEST(advice_ends_the_watch),
	TEST(what_is_unmapped_may_have_been_touched),
	TEST(what_went_unannounced_may_have_been_touched),
	TEST(a_new_mapping_has_nothing_of_the_old),
	TEST(a_huge_page_is_touched_somewhere),
	TEST(split_and_collapse_touch_nothing),
	TEST(cycles_give_an_average),
	TEST(a_later_cycle_watches_more),
	TEST(lost_events_are_a_doubt),
	TEST(who_shares_a_page_may_not_have_been_it),
	TEST(unwatched_is_unknown),
	TEST(a_clear_alone_says_nothing),
};

static int new_replay(void)
{
	seq = clock_ns = walk = 0;
	return replay_new(OWNER_AUTO, text, NULL, &p);
}

static void free_replay(void)
{
	join_free(&r);
	replay_free(&p);
}

int main(void)
{
	return RUN(tests, new_replay, free_replay);
}
