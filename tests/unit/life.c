/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of what is charged when a page's backing changes: to who had the page when it happened,
 * never to who has its address later, and nothing where the hook was absent.
 */
#include <stdio.h>
#include <string.h>
#include "lib/join/live.h"
#include "lib/join/replay.h"
#include "tests/unit/check.h"

#define PG    MP_PAGE_SIZE
#define HUGE_ (512 * PG)
#define BASE  0x7f0000000000ull
#define AT(n) (BASE + (n) * (1ull << 24)) /* places that do not touch, each on a huge page */

static struct replay *p;
static struct report *r;
static u64 seq;

static const char *const texts[] = {NULL,	"reclaim",     "swap-in",    "migrate",
				    "collapse", "major-fault", "a provider", "direct-reclaim"};
enum { PROVIDER = 6, NR_TEXTS = 8 };

static const char *text(const void *ctx, u32 id)
{
	(void)ctx;
	return id < NR_TEXTS ? texts[id] : NULL;
}

static int put(u16 type, const void *body, size_t len)
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
	return replay_feed(p, &rec.hdr);
}

static int begin(int hooks)
{
	struct mp_ev_space born = {.tgid = 7, .cause = MP_SPACE_EXEC};
	struct mp_ev_hook hook = {0};
	u32 i;
	int err;

	join_free(&r);
	replay_free(&p);
	seq = 0;
	err = replay_new(OWNER_AUTO, text, NULL, &p);
	for (i = 1; i < NR_TEXTS && !err; i++) {
		hook.capability = i;
		hook.provider = hooks ? PROVIDER : 0;
		err = i == PROVIDER ? 0 : put(MP_EV_HOOK, &hook, sizeof(hook));
	}
	return err ? err : put(MP_EV_SPACE, &born, sizeof(born));
}

static int map(u64 start, u64 len, u64 stack)
{
	struct mp_ev_map ev = {
		.start = start, .end = start + len, .seq_entry = seq, .stack = stack};

	return put(MP_EV_MAP, &ev, sizeof(ev));
}

static int unmap(u64 start, u64 len)
{
	struct mp_ev_unmap ev = {.start = start, .end = start + len};

	return put(MP_EV_UNMAP, &ev, sizeof(ev));
}

static int fault(u64 addr, u8 order)
{
	struct mp_ev_fault ev = {.addr = addr, .stack = 99, .member = 1, .order = order};

	return put(MP_EV_FAULT, &ev, sizeof(ev));
}

static int edge(u16 kind, u64 addr, u32 pages)
{
	struct mp_ev_edge ev = {.addr = addr, .pages = pages, .kind = kind};

	return put(MP_EV_EDGE, &ev, sizeof(ev));
}

/* The last picture: one VMA, its first pages resident and small. */
static int picture(u64 start, u64 len, u32 pages)
{
	struct mp_ev_walk w = {.id = 1};
	struct mp_ev_vma v = {.start = start, .end = start + len, .walk = 1};
	struct mp_ev_run run = {
		.start = start, .pages = pages, .flags = MP_PAGE_RESIDENT, .mapcount = 1};
	int err = put(MP_EV_WALK, &w, sizeof(w));

	err = err ? err : put(MP_EV_VMA, &v, sizeof(v));
	err = err ? err : put(MP_EV_RUN, &run, sizeof(run));
	w.end = 1;
	return err ? err : put(MP_EV_WALK, &w, sizeof(w));
}

static int end(void)
{
	int err = replay_step(p, ~0ull);

	return err ? err : replay_report(p, &r);
}

static s64 sum(u64 stack, enum cost_id id)
{
	s64 n = 0;
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].stack == stack)
			n += cost_value(&r->rows[i].cost[id]);
	return n;
}

static int edges_are_of_who_had_the_page_then(void)
{
	CHECK(!begin(1) && !map(AT(0), 4 * PG, 1) && !fault(AT(0), 0) && !fault(AT(0) + PG, 0));
	CHECK(!edge(MP_EDGE_RECLAIMED, AT(0), 1) && !edge(MP_EDGE_RECLAIMED, AT(0) + PG, 1));
	CHECK(!unmap(AT(0), 4 * PG) && !map(AT(0), 4 * PG, 2) && !fault(AT(0), 0));
	CHECK(!edge(MP_EDGE_MIGRATED, AT(0), 1) && !edge(MP_EDGE_REFAULTED, AT(0) + PG, 1));
	CHECK(!edge(MP_EDGE_MAJOR, AT(0) + PG + 77, 1) && !picture(AT(0), 4 * PG, 2) && !end());
	CHECK(sum(1, COST_RECLAIMED) == 2 * (s64)PG && sum(2, COST_RECLAIMED) == 0);
	CHECK(sum(2, COST_MIGRATED) == (s64)PG && sum(1, COST_MIGRATED) == 0);
	CHECK(sum(2, COST_REFAULTED) == (s64)PG && sum(2, COST_MAJOR_FAULTS) == 1);
	CHECK(r->total[COST_RECLAIMED].exact == 0 && r->total[COST_RECLAIMED].known);
	return 1;
}

static int pages_of_unknown_place_are_a_row_of_their_own(void)
{
	CHECK(!begin(1) && !map(AT(0), 4 * PG, 1) && !edge(MP_EDGE_RECLAIMED, 0, 3));
	/* Half in a mapping, half in none. */
	CHECK(!edge(MP_EDGE_RECLAIMED, AT(0) + 3 * PG, 2) && !picture(AT(0), 4 * PG, 1) && !end());
	CHECK(sum(1, COST_RECLAIMED) == (s64)PG);
	CHECK(cost_value(&r->total[COST_RECLAIMED]) == 5 * (s64)PG);
	return 1;
}

static int what_is_in_small_pages_at_the_end_was_split(void)
{
	CHECK(!begin(1) && !map(AT(0), 2 * HUGE_, 1) && !fault(AT(0), 9) &&
	      !fault(AT(0) + HUGE_, 9));
	CHECK(!unmap(AT(0), PG) && !picture(AT(0) + PG, 2 * HUGE_ - PG, 511) && !end());
	CHECK(sum(1, COST_SPLITS) == 1);
	return 1;
}

static int what_was_unmapped_whole_was_not(void)
{
	CHECK(!begin(1) && !map(AT(0), HUGE_, 1) && !fault(AT(0), 9));
	CHECK(!edge(MP_EDGE_COLLAPSED, AT(0), 512));
	CHECK(!unmap(AT(0), HUGE_) && !map(AT(0), HUGE_, 2) && !picture(AT(0), HUGE_, 512));
	CHECK(!end() && sum(1, COST_SPLITS) == 0 && sum(2, COST_SPLITS) == 0);
	CHECK(sum(1, COST_COLLAPSES) == 1 && sum(2, COST_COLLAPSES) == 0);
	return 1;
}

static int without_a_hook_nothing_is_known(void)
{
	static const enum cost_id columns[] = {COST_RECLAIMED,	  COST_REFAULTED,
					       COST_MIGRATED,	  COST_COLLAPSES,
					       COST_MAJOR_FAULTS, COST_RECLAIM_STALL};
	size_t i, c;

	CHECK(!begin(0) && !map(AT(0), 4 * PG, 1) && !picture(AT(0), 4 * PG, 2) && !end());
	for (c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
		CHECK(cost_absent(r, columns[c]) && !r->total[columns[c]].known);
		for (i = 0; i < r->nr_rows; i++)
			CHECK(!r->rows[i].cost[columns[c]].known);
	}
	return 1;
}

static int time_in_reclaim_is_of_the_fault_or_of_the_stack(void)
{
	struct mp_ev_reclaim in = {.addr = AT(0), .stack = 98, .stall = 5};
	struct mp_ev_reclaim out = {.stack = 98, .stall = 7};

	CHECK(!begin(1) && !map(AT(0), 4 * PG, 1) && !put(MP_EV_RECLAIM, &in, sizeof(in)));
	CHECK(!put(MP_EV_RECLAIM, &out, sizeof(out)) && !picture(AT(0), 4 * PG, 1) && !end());
	CHECK(sum(1, COST_RECLAIM_STALL) == 5 && sum(98, COST_RECLAIM_STALL) == 7);
	return 1;
}

static const struct test tests[] = {
	TEST(edges_are_of_who_had_the_page_then),
	TEST(pages_of_unknown_place_are_a_row_of_their_own),
	TEST(what_is_in_small_pages_at_the_end_was_split),
	TEST(what_was_unmapped_whole_was_not),
	TEST(without_a_hook_nothing_is_known),
	TEST(time_in_reclaim_is_of_the_fault_or_of_the_stack),
};

int main(void)
{
	int failed = RUN(tests, NULL, NULL);

	join_free(&r);
	replay_free(&p);
	return failed;
}
