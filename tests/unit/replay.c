/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of the replay: what is applied in steps gives what one step gives, nothing is exact
 * that a record under way may change, and processes that came and went leave nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/join/live.h"
#include "lib/join/replay.h"
#include "tests/unit/check.h"

#define PG    MP_PAGE_SIZE
#define BASE  0x7f0000000000ull
#define AT(n) (BASE + (n) * (1ull << 24)) /* places that do not touch */

static struct replay *p;
static struct report *r;
static u64 seq, clock_ns;

static const char *no_text(const void *ctx, u32 id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

/* The file that gets the same records, those of a while in any order. */
static struct trace_writer *file;
static struct {
	union {
		struct mp_hdr hdr;
		u8 bytes[192];
	} rec[200];
	u32 nr;
} queued;

static u64 rng(void)
{
	static u64 s = 88172645463325252ull;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

static void write_one(u32 i)
{
	if (trace_write(file, &queued.rec[i].hdr))
		abort();
	queued.rec[i] = queued.rec[--queued.nr];
}

/* The records of a picture have one number and stay in their order. */
static void queue(const struct mp_hdr *rec)
{
	if (rec->type != MP_EV_FAULT && rec->type != MP_EV_MAP && rec->type != MP_EV_UNMAP) {
		if (trace_write(file, rec))
			abort();
		return;
	}
	if (queued.nr == sizeof(queued.rec) / sizeof(queued.rec[0]))
		write_one((u32)(rng() % queued.nr));
	memcpy(&queued.rec[queued.nr++], rec, rec->size);
}

static void put_at(u64 at, u16 type, u32 space, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[128];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .space = space,
			 .seq = at,
			 .time_ns = ++clock_ns}};

	memcpy(rec.body, body, len);
	if (replay_feed(p, &rec.hdr))
		abort();
	if (file)
		queue(&rec.hdr);
}

static void space_born(u32 space, u32 parent)
{
	struct mp_ev_space ev = {
		.parent = parent,
		.tgid = 100 + space,
		.cause = parent ? MP_SPACE_FORK : MP_SPACE_ATTACH,
	};

	put_at(++seq, MP_EV_SPACE, space, &ev, sizeof(ev));
}

static void forked(u32 space, u32 parent, u64 entry)
{
	struct mp_ev_space ev = {
		.parent = parent,
		.tgid = 100 + space,
		.cause = MP_SPACE_FORK,
		.seq_entry = entry,
	};

	put_at(++seq, MP_EV_SPACE, space, &ev, sizeof(ev));
}

static void space_ends(u32 space)
{
	struct mp_ev_space_end ev = {.tgid = 100 + space};

	put_at(++seq, MP_EV_SPACE_END, space, &ev, sizeof(ev));
}

static void map_at(u64 at, u32 space, u64 start, u64 pages, u64 stack)
{
	struct mp_ev_map ev = {
		.start = start,
		.end = start + pages * PG,
		.seq_entry = at - 1,
		.stack = stack,
	};

	put_at(at, MP_EV_MAP, space, &ev, sizeof(ev));
}

static void map(u32 space, u64 start, u64 pages, u64 stack)
{
	map_at(++seq, space, start, pages, stack);
}

static u64 unmap(u32 space, u64 start, u64 pages)
{
	struct mp_ev_unmap ev = {.start = start, .end = start + pages * PG};

	put_at(++seq, MP_EV_UNMAP, space, &ev, sizeof(ev));
	return seq;
}

static void unmap_end(u32 space, u64 start, u64 pages, u64 entry)
{
	struct mp_ev_unmap_end ev = {
		.start = start,
		.end = start + pages * PG,
		.seq_entry = entry,
	};

	put_at(++seq, MP_EV_UNMAP_END, space, &ev, sizeof(ev));
}

static void fault(u32 space, u64 addr, u64 stack)
{
	struct mp_ev_fault ev = {.addr = addr, .stack = stack, .member = 1};

	put_at(++seq, MP_EV_FAULT, space, &ev, sizeof(ev));
}

struct held {
	u64 start, pages, resident;
};

/* A picture of these VMAs, of each the first pages resident. */
static void picture(u32 space, u32 walk, const struct held *held, int n)
{
	struct mp_ev_walk w = {.id = walk, .provider = MP_WALK_PAGEMAP};
	struct mp_ev_check c = {.walk = walk};
	u64 at = ++seq;
	int i;

	for (i = 0; i < n; i++)
		c.rss += held[i].resident * PG;
	put_at(at, MP_EV_WALK, space, &w, sizeof(w));
	put_at(at, MP_EV_CHECK, space, &c, sizeof(c));
	for (i = 0; i < n; i++) {
		struct mp_ev_vma v = {.start = held[i].start,
				      .end = held[i].start + held[i].pages * PG,
				      .flags = MP_VMA_READ | MP_VMA_WRITE,
				      .walk = walk};
		struct mp_ev_run run = {.start = held[i].start,
					.pages = (u32)held[i].resident,
					.flags = MP_PAGE_RESIDENT,
					.mapcount = 1};

		put_at(at, MP_EV_VMA, space, &v, sizeof(v));
		if (run.pages)
			put_at(at, MP_EV_RUN, space, &run, sizeof(run));
	}
	w.end = c.when = 1;
	put_at(++seq, MP_EV_CHECK, space, &c, sizeof(c));
	put_at(seq, MP_EV_WALK, space, &w, sizeof(w));
}

static int step(u64 upto)
{
	join_free(&r);
	return replay_step(p, upto) || replay_report(p, &r);
}

/* A column of all rows of a space with a mapping stack. */
static struct cost sum(u32 space, u64 stack, enum cost_id id)
{
	struct cost c = {0};
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].space == space && r->rows[i].stack == stack) {
			c.exact += r->rows[i].cost[id].exact;
			c.inferred += r->rows[i].cost[id].inferred;
		}
	return c;
}

static s64 exact(u32 space, u64 stack, enum cost_id id)
{
	return sum(space, stack, id).exact / (s64)PG;
}

static s64 inferred(u32 space, u64 stack, enum cost_id id)
{
	return sum(space, stack, id).inferred / (s64)PG;
}

static int replay_again(void)
{
	join_free(&r);
	replay_free(&p);
	seq = clock_ns = 0;
	return replay_new(OWNER_AUTO, no_text, NULL, &p);
}

/* Four pictures of a process that maps and touches; steps: a step after each. */
static int play(int steps)
{
	struct held held[9] = {{AT(0), 11, 5}};
	u64 i, k;

	space_born(1, 0);
	picture(1, 1, held, 1);
	if (steps && step(seq))
		return -1;
	for (i = 1; i <= 3; i++) {
		map(1, AT(i), 7 * i, 1000 + i);
		for (k = 0; k < 3 * i; k++)
			fault(1, AT(i) + k * PG, 2000);
		held[i] = (struct held){AT(i), 7 * i, 3 * i};
		held[0].resident++;
		picture(1, (u32)i + 1, held, (int)i + 1);
		if (steps && step(seq))
			return -1;
	}
	return step(~0ull);
}

static int steps_give_what_one_step_gives(void)
{
	u64 i;
	int steps;

	for (steps = 0; steps < 2; steps++) {
		CHECK(!replay_again() && !play(steps));
		for (i = 1; i <= 3; i++) {
			CHECK(exact(1, 1000 + i, COST_RESERVED) == (s64)(7 * i));
			CHECK(exact(1, 1000 + i, COST_RESIDENT) == (s64)(3 * i));
			CHECK(exact(1, 1000 + i, COST_GROWN) == (s64)(3 * i));
			CHECK(inferred(1, 1000 + i, COST_TOUCHED) == (s64)(3 * i));
			CHECK(!inferred(1, 1000 + i, COST_RESIDENT));
		}
		/* What was there before is inferred by its shape, and grew by three. */
		CHECK(inferred(1, 0, COST_RESIDENT) == 8 && inferred(1, 0, COST_GROWN) == 3);
		CHECK(cost_value(&r->total[COST_RESIDENT]) == (8 + 18) * (s64)PG);
		CHECK(r->check[COST_RESIDENT].status == CHECK_OK);
	}
	return 1;
}

static int arrival_is_put_in_order(void)
{
	struct held held = {AT(1), 4, 2};

	space_born(1, 0);
	picture(1, 1, NULL, 0);
	CHECK(!step(seq));
	/* The page's ring was read before the mapping's. */
	seq += 2;
	fault(1, AT(1), 2000);
	map_at(seq - 1, 1, AT(1), 4, 1000);
	picture(1, 2, &held, 1);
	CHECK(!step(seq));
	CHECK(exact(1, 1000, COST_RESIDENT) == 2 && inferred(1, 1000, COST_TOUCHED) == 1);
	return 1;
}

static int records_behind_the_step_wait(void)
{
	struct held held = {AT(1), 4, 2};
	u64 upto;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	picture(1, 1, &held, 1);
	upto = seq;
	map(1, AT(2), 4, 1001);
	CHECK(!step(upto));
	CHECK(exact(1, 1000, COST_RESERVED) == 4 && exact(1, 1001, COST_RESERVED) == 0);
	held.resident = 3;
	picture(1, 2, &held, 1);
	CHECK(!step(seq));
	CHECK(exact(1, 1000, COST_RESIDENT) == 3);
	return 1;
}

static int a_call_on_its_way_makes_nothing_exact(void)
{
	struct held held = {AT(1), 4, 2};
	u64 call;

	space_born(1, 0);
	picture(1, 1, NULL, 0);
	CHECK(!step(seq));
	/* It drew its number before the picture ended, its record comes too late for the step. */
	call = ++seq;
	picture(1, 2, &held, 1);
	CHECK(!step(seq));
	CHECK(cost_value(&r->total[COST_RESIDENT]) == 2 * (s64)PG);
	CHECK(!r->total[COST_RESIDENT].exact && !r->total[COST_RESERVED].exact);
	map_at(call, 1, AT(1), 4, 1000);
	picture(1, 3, &held, 1);
	CHECK(!step(seq));
	/* Named by now; but it was applied behind its place: not exact for good. */
	CHECK(inferred(1, 1000, COST_RESIDENT) == 2 && !r->total[COST_RESIDENT].exact);
	return 1;
}

static int a_call_that_overlaps_the_picture_is_inferred(void)
{
	struct held held = {AT(1), 4, 2};
	u64 before;

	space_born(1, 0);
	picture(1, 1, NULL, 0);
	before = seq;
	picture(1, 2, &held, 1);
	/* Entered before the picture ended, returned after it. */
	map_at(++seq, 1, AT(1), 4, 1000);
	CHECK(!step(before + 2));
	CHECK(!r->total[COST_RESIDENT].exact);
	picture(1, 3, &held, 1);
	CHECK(!step(seq));
	CHECK(exact(1, 1000, COST_RESIDENT) == 2 && !r->total[COST_RESIDENT].inferred);
	return 1;
}

/* Its two mappings lie side by side, and are one VMA. */
static int until_munmap_returns_its_pages_are_the_former_owners(void)
{
	struct held held = {AT(1), 6, 6}, after[] = {{AT(1), 2, 1}, {AT(2), 1, 1}};
	u64 call;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	map(1, AT(1) + 4 * PG, 2, 1001);
	call = unmap(1, AT(1), 6);
	picture(1, 1, &held, 1);
	CHECK(!step(seq));
	CHECK(inferred(1, 1000, COST_RESIDENT) == 4 && inferred(1, 1001, COST_RESIDENT) == 2);
	CHECK(inferred(1, 1000, COST_RESERVED) == 4 && !r->total[COST_RESERVED].exact);
	CHECK(!r->check[COST_RESIDENT].unattributed);
	/* Another thread gets the place before the call is back. */
	map(1, AT(1), 2, 1002);
	unmap_end(1, AT(1), 6, call);
	map(1, AT(2), 1, 1003);
	picture(1, 2, after, 2);
	CHECK(!step(seq));
	CHECK(exact(1, 1002, COST_RESIDENT) == 1 && exact(1, 1002, COST_RESERVED) == 2);
	CHECK(exact(1, 1003, COST_RESIDENT) == 1 && !r->total[COST_RESERVED].inferred);
	CHECK(cost_value(&r->total[COST_RESERVED]) == 3 * (s64)PG);
	return 1;
}

/* The call is back, and what the picture gave to its former owner is not kept for good. */
static int a_munmap_that_returned_is_over(void)
{
	struct held held = {AT(1), 4, 4};
	u64 call;

	space_born(1, 0);
	picture(1, 1, NULL, 0);
	map(1, AT(1), 4, 1000);
	call = unmap(1, AT(1), 4);
	picture(1, 2, &held, 1);
	unmap_end(1, AT(1), 4, call);
	/* Mapped by a call that nobody saw: it is not the former owner's. */
	picture(1, 3, &held, 1);
	CHECK(!step(seq));
	CHECK(cost_value(&r->total[COST_RESIDENT]) == 4 * (s64)PG);
	CHECK(!inferred(1, 1000, COST_RESIDENT) && !exact(1, 1000, COST_RESIDENT));
	CHECK(r->check[COST_RESIDENT].unattributed == 4 * PG);
	return 1;
}

/* The parent's mappings are copied some time in the fork: what other threads do then may be in the
 * child or not, what they did before is. */
static int what_the_parent_did_while_it_forked_is_in_doubt(void)
{
	struct held child[] = {{AT(1), 4, 4}, {AT(2), 2, 2}, {AT(3), 3, 3}, {AT(4), 5, 5}};
	struct mp_ev_map late = {.start = AT(4), .end = AT(4) + 5 * PG, .stack = 1004};
	u64 fork, call;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	map(1, AT(2), 2, 1001);
	map(1, AT(3), 3, 1003);
	fork = ++seq;
	map(1, AT(2), 2, 1002); /* in place of the other */
	call = unmap(1, AT(3), 3);
	unmap_end(1, AT(3), 3, call);
	/* It enters before the child is announced, and returns after it. */
	late.seq_entry = ++seq;
	forked(2, 1, fork);
	put_at(++seq, MP_EV_MAP, 1, &late, sizeof(late));
	picture(2, 1, child, 4);
	CHECK(!step(~0ull));
	CHECK(exact(2, 1000, COST_RESIDENT) == 4);
	CHECK(!exact(2, 1001, COST_RESIDENT) && !exact(2, 1002, COST_RESIDENT));
	CHECK(inferred(2, 1002, COST_RESIDENT) == 2 && inferred(2, 1002, COST_RESERVED) == 2);
	CHECK(inferred(2, 1004, COST_RESIDENT) == 5);
	CHECK(r->total[COST_RESIDENT].exact == 4 * (s64)PG);
	CHECK(cost_value(&r->total[COST_RESIDENT]) == 14 * (s64)PG);
	return 1;
}

static int a_mapping_listed_again_counts_once(void)
{
	struct held held[] = {{AT(1), 4, 4}, {AT(1), 8, 7}, {AT(1), 9, 9}, {AT(2), 2, 1}};

	space_born(1, 0);
	map(1, AT(1), 9, 1000);
	map(1, AT(2), 2, 1001);
	picture(1, 1, held, 4);
	CHECK(!step(seq));
	CHECK(exact(1, 1000, COST_RESIDENT) == 9 && exact(1, 1000, COST_RESERVED) == 9);
	CHECK(exact(1, 1001, COST_RESIDENT) == 1);
	/* The next picture begins anew. */
	picture(1, 2, held + 2, 2);
	CHECK(!step(seq));
	CHECK(exact(1, 1000, COST_RESIDENT) == 9 && exact(1, 1001, COST_RESIDENT) == 1);
	return 1;
}

static int a_loss_demotes_from_its_step_on(void)
{
	struct mp_ev_loss loss = {.count = 1, .cause = MP_LOSS_BY_CLASS, .cls = MP_CLASS_MAP};
	struct held held = {AT(1), 4, 2};

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	picture(1, 1, &held, 1);
	CHECK(!step(seq));
	CHECK(exact(1, 1000, COST_RESIDENT) == 2);
	put_at(++seq, MP_EV_LOSS, 1, &loss, sizeof(loss));
	picture(1, 2, &held, 1);
	CHECK(!step(seq));
	CHECK(inferred(1, 1000, COST_RESIDENT) == 2 && !r->total[COST_RESIDENT].exact);
	return 1;
}

/* All causes but those of a name or a caller. */
static int what_is_lost_is_an_event_or_a_name(void)
{
	static const u32 names[] = {MP_LOSS_STACK_MAP, MP_LOSS_NAMES, MP_LOSS_TABLES};
	struct mp_ev_loss loss = {.count = 3, .cls = MP_CLASS_MAX};
	struct held held = {AT(1), 4, 2};
	size_t i;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		loss.cause = names[i];
		put_at(++seq, MP_EV_LOSS, 0, &loss, sizeof(loss));
	}
	picture(1, 1, &held, 1);
	CHECK(!step(seq));
	CHECK(!r->lost && r->losses[MP_LOSS_NAMES].count == 3);
	CHECK(exact(1, 1000, COST_RESIDENT) == 2);
	for (i = 0; i < MP_LOSS_MAX; i++) {
		if (i == names[0] || i == names[1] || i == names[2] || i > MP_LOSS_CALL_HALF)
			continue;
		loss.cause = (u32)i;
		put_at(++seq, MP_EV_LOSS, 0, &loss, sizeof(loss));
	}
	CHECK(!step(seq));
	CHECK(r->lost == 3 * (MP_LOSS_CALL_HALF + 1 - sizeof(names) / sizeof(names[0])));
	return 1;
}

static int who_came_and_went_leaves_nothing(void)
{
	struct held held = {AT(1), 4, 2};
	u32 child, walk = 1, origins = 0;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	picture(1, walk++, &held, 1);
	CHECK(!step(seq));
	for (child = 2; child <= 3000; child++) {
		struct {
			struct mp_ev_stack ev;
			u64 pc;
		} stack = {.ev = {.id = child, .n = 1}, .pc = 4711};

		space_born(child, 1);
		put_at(++seq, MP_EV_STACK, child, &stack, sizeof(stack));
		map(child, AT(2), 9, child);
		fault(child, AT(2), child);
		space_ends(child);
		if (child % 100)
			continue;
		picture(1, walk++, &held, 1);
		CHECK(!step(seq));
		CHECK(exact(1, 1000, COST_RESIDENT) == 2 && r->nr_rows == 1);
		CHECK(r->nr_targets == 1);
		if (!origins)
			origins = p->nr_origins;
	}
	CHECK(p->nr_origins <= origins + 8 && p->named.nr == 0 && p->pending.nr == 0);
	CHECK(p->nr_spaces == 1);
	return 1;
}

static int a_stack_sent_again_is_kept_once(void)
{
	struct {
		struct mp_ev_stack ev;
		u64 pc;
	} stack = {.ev = {.n = 1}, .pc = 4711};
	struct held held = {AT(1), 4, 2};
	u32 i;

	space_born(1, 0);
	map(1, AT(1), 4, 3);
	for (i = 0; i < 30000; i++) {
		stack.ev.id = 1 + i % 3000;
		put_at(++seq, MP_EV_STACK, 1, &stack, sizeof(stack));
	}
	picture(1, 1, &held, 1);
	CHECK(!step(seq));
	CHECK(p->named.nr == 3000);
	CHECK(r->nr_rows == 1 && r->rows[0].nr_frames == 1 && r->rows[0].frames[0].addr == 4711);
	return 1;
}

static int what_a_child_inherited_stays_when_the_parent_is_gone(void)
{
	struct held held = {AT(1), 4, 3};
	u32 walk = 2, i;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	picture(1, 1, &held, 1);
	CHECK(!step(seq));
	space_born(2, 1);
	space_born(3, 2);
	space_ends(1);
	space_ends(2);
	for (i = 0; i < 3; i++) {
		picture(3, walk++, &held, 1);
		CHECK(!step(seq));
		CHECK(exact(3, 1000, COST_RESIDENT) == 3 && exact(3, 1000, COST_RESERVED) == 4);
		CHECK(cost_value(&r->total[COST_RESIDENT]) == 3 * (s64)PG);
	}
	/* The last of the family, too. */
	space_ends(3);
	CHECK(!step(seq) && !step(seq));
	CHECK(r->nr_rows && cost_value(&r->total[COST_RESIDENT]) == 3 * (s64)PG);
	space_born(4, 0);
	picture(4, walk++, &held, 1);
	CHECK(!step(seq));
	CHECK(exact(3, 1000, COST_RESIDENT) == 0 && r->nr_targets == 1);
	return 1;
}

static void window(u32 end)
{
	struct mp_ev_window ev = {.end = end};

	put_at(seq, MP_EV_WINDOW, 0, &ev, sizeof(ev));
}

static int flows_and_duration_are_of_the_recorded_time(void)
{
	struct held held = {AT(1), 16, 9};
	u64 began, i;

	space_born(1, 0);
	picture(1, 1, NULL, 0);
	map(1, AT(1), 16, 1000);
	for (i = 0; i < 2; i++)
		fault(1, AT(1) + i * PG, 2000);
	window(0);
	began = clock_ns;
	for (; i < 5; i++)
		fault(1, AT(1) + i * PG, 2000);
	clock_ns += 1000;
	window(1);
	CHECK(clock_ns - began == 3 + 1000 + 1);
	for (; i < 9; i++)
		fault(1, AT(1) + i * PG, 2000);
	clock_ns += 1000000;
	picture(1, 2, &held, 1);
	CHECK(!step(~0ull));
	CHECK(r->duration_ns == 1004 && r->picture_age_ns == 0);
	CHECK(inferred(1, 1000, COST_TOUCHED) == 3 && inferred(1, 1000, COST_FAULTED) == 3);
	CHECK(exact(1, 1000, COST_RESIDENT) == 9);
	return 1;
}

/* A shell that becomes a program, twice, beside a child: two processes. */
static int a_process_is_one_target_whatever_it_execs(void)
{
	struct mp_ev_space ev = {.parent = 1, .tgid = 101, .cause = MP_SPACE_EXEC};
	struct held held = {AT(1), 4, 2};

	space_born(1, 0);
	space_born(2, 1);
	put_at(++seq, MP_EV_SPACE, 3, &ev, sizeof(ev));
	ev.parent = 3;
	put_at(++seq, MP_EV_SPACE, 4, &ev, sizeof(ev));
	map(4, AT(1), 4, 1000);
	picture(4, 1, &held, 1);
	CHECK(!step(~0ull));
	CHECK(r->nr_targets == 2 && r->targets[0].pid == 101 && r->targets[1].pid == 102);
	return 1;
}

/* Three pages before the recording; then one is faulted on again, as by copy on write. */
static int a_page_that_moved_to_a_fault_is_no_shrinkage(void)
{
	struct held held = {AT(1), 4, 3};
	s64 resident = 0, lo = 0, hi = 0;
	size_t i;

	space_born(1, 0);
	picture(1, 1, &held, 1);
	CHECK(!step(seq));
	fault(1, AT(1), 2000);
	picture(1, 2, &held, 1);
	CHECK(!step(seq));
	CHECK(r->nr_rows == 2);
	for (i = 0; i < r->nr_rows; i++) {
		const struct cost *c = &r->rows[i].cost[COST_GROWN];

		/* Nothing grew; a row may not know, but then it says so. */
		CHECK(c->exact == 0 && cost_is_open(c));
		CHECK(cost_lo(c) <= 0 && cost_hi(c) >= 0);
		lo += cost_lo(c);
		hi += cost_hi(c);
		resident += cost_value(&r->rows[i].cost[COST_RESIDENT]);
	}
	CHECK(lo <= 0 && hi >= 0 && resident == 3 * (s64)PG);
	CHECK(cost_value(&r->total[COST_GROWN]) == 0);
	CHECK(cost_lo(&r->total[COST_RESIDENT]) == resident);
	return 1;
}

static int what_a_shape_names_is_counted(void)
{
	struct held held = {AT(1), 4, 3};
	const struct cost *c;

	space_born(1, 0);
	picture(1, 1, &held, 1);
	CHECK(!step(seq) && r->nr_rows == 1 && r->rows[0].kind == ORIGIN_PREEXISTING);
	c = &r->rows[0].cost[COST_RESIDENT];
	CHECK(!c->exact && c->inferred == 3 * (s64)PG);
	CHECK(cost_lo(c) == 3 * (s64)PG && cost_hi(c) == 3 * (s64)PG);
	return 1;
}

static int no_fault_seen_is_zero_but_not_exact(void)
{
	struct held held = {AT(1), 4, 3};
	struct mp_ev_loss loss = {.cls = MP_CLASS_PAGE, .count = 1};
	const struct cost *c;

	space_born(1, 0);
	map(1, AT(1), 4, 1000);
	picture(1, 1, &held, 1);
	CHECK(!step(seq) && r->nr_rows == 1);
	c = &r->rows[0].cost[COST_FAULTS];
	CHECK(c->known && c->open && !cost_value(c));
	c = &r->rows[0].cost[COST_TOUCHED];
	CHECK(c->known && cost_lo(c) == 0 && cost_hi(c) == 4 * (s64)PG);
	/* One was lost: how many there were is unknown. */
	put_at(++seq, MP_EV_LOSS, 1, &loss, sizeof(loss));
	CHECK(!step(seq));
	CHECK(!r->rows[0].cost[COST_FAULTS].known);
	return 1;
}

static void random_events(int n)
{
	u32 k;

	while (n--) {
		k = (u32)(rng() % 16);
		if (rng() % 200 == 0)
			map(1, AT(k), 64 + rng() % 2000, 1000 + k);
		else if (rng() % 200 == 0)
			unmap(1, AT(k) + rng() % 64 * PG, 1 + rng() % 512);
		else
			fault(1, AT(k) + rng() % 2000 * PG, 2000 + rng() % 30);
	}
}

/* Two passes and a window give what gathering all of it gives. */
static int a_file_is_replayed_as_it_happened(void)
{
	char path[] = "/tmp/memprov-replay.XXXXXX", old[sizeof(path) + 4];
	struct held held[16];
	struct report *f = NULL;
	int fd = mkstemp(path), k, err;
	size_t i;

	CHECK(fd >= 0);
	close(fd);
	unlink(path);
	CHECK(!trace_writer_open(path, 0, &file) && !trace_writer_publish(file));
	for (k = 0; k < 16; k++)
		held[k] = (struct held){AT(k), 2000, (u64)k * 100};
	space_born(1, 0);
	for (k = 0; k < 16; k++)
		map(1, AT(k), 2000, 1000 + (u64)k);
	random_events(40000);
	window(0);
	random_events(70000);
	picture(1, 1, held, 16);
	random_events(40000);
	window(1);
	random_events(20000);
	while (queued.nr)
		write_one((u32)(rng() % queued.nr));
	CHECK(!trace_writer_close(&file));
	err = join_file(path, OWNER_AUTO, &f);
	unlink(path);
	snprintf(old, sizeof(old), "%s.old", path);
	unlink(old);
	CHECK(!err && !step(~0ull));
	CHECK(f->mp_events == r->mp_events && f->duration_ns == r->duration_ns);
	CHECK(f->nr_rows == r->nr_rows && f->nr_rows >= 16);
	for (i = 0; i < f->nr_rows; i++) {
		CHECK(f->rows[i].kind == r->rows[i].kind && f->rows[i].stack == r->rows[i].stack);
		CHECK(!memcmp(f->rows[i].cost, r->rows[i].cost, sizeof(f->rows[i].cost)));
	}
	CHECK(cost_value(&f->total[COST_FAULTS]) > 50000);
	join_free(&f);
	return 1;
}

static const struct test tests[] = {
	TEST(a_process_is_one_target_whatever_it_execs),
	TEST(steps_give_what_one_step_gives),
	TEST(arrival_is_put_in_order),
	TEST(a_file_is_replayed_as_it_happened),
	TEST(records_behind_the_step_wait),
	TEST(a_call_on_its_way_makes_nothing_exact),
	TEST(a_call_that_overlaps_the_picture_is_inferred),
	TEST(until_munmap_returns_its_pages_are_the_former_owners),
	TEST(a_munmap_that_returned_is_over),
	TEST(what_the_parent_did_while_it_forked_is_in_doubt),
	TEST(a_mapping_listed_again_counts_once),
	TEST(a_loss_demotes_from_its_step_on),
	TEST(flows_and_duration_are_of_the_recorded_time),
	TEST(what_is_lost_is_an_event_or_a_name),
	TEST(who_came_and_went_leaves_nothing),
	TEST(a_stack_sent_again_is_kept_once),
	TEST(a_page_that_moved_to_a_fault_is_no_shrinkage),
	TEST(what_a_shape_names_is_counted),
	TEST(no_fault_seen_is_zero_but_not_exact),
	TEST(what_a_child_inherited_stays_when_the_parent_is_gone),
};

int main(void)
{
	int failed = RUN(tests, replay_again, NULL);

	join_free(&r);
	replay_free(&p);
	return failed;
}
