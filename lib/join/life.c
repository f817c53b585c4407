/* SPDX-License-Identifier: GPL-2.0-only
 * What becomes of pages after their first fault, charged to who had them when it happened. All of
 * it is inferred: tracepoints do not see every change, and name no owner. */
#include <errno.h>
#include <string.h>
#include "lib/join/replay.h"

/* Which capability of HOOK a column lives on. */
static const struct {
	const char *capability;
	enum cost_id column;
} feeds[] = {
	{"reclaim", COST_RECLAIMED},	    {"swap-in", COST_REFAULTED},
	{"migrate", COST_MIGRATED},	    {"collapse", COST_COLLAPSES},
	{"major-fault", COST_MAJOR_FAULTS}, {"direct-reclaim", COST_RECLAIM_STALL},
};

#define NR_FEEDS (sizeof(feeds) / sizeof(feeds[0]))

void life_begin(struct report *r)
{
	size_t i;

	for (i = 0; i < NR_FEEDS; i++)
		r->no_life[feeds[i].column] = "not recorded";
}

void life_note(struct report *r, const char *capability, int absent, const char *why)
{
	size_t i;

	for (i = 0; i < NR_FEEDS; i++)
		if (!strcmp(capability, feeds[i].capability))
			r->no_life[feeds[i].column] = !absent ? NULL : why ? why : "not recorded";
}

int join_is_life(const char *capability)
{
	size_t i;

	for (i = 0; capability && i < NR_FEEDS; i++)
		if (!strcmp(capability, feeds[i].capability))
			return 1;
	return 0;
}

int life_is_edge(int column)
{
	size_t i;

	for (i = 0; i < NR_FEEDS; i++)
		if (feeds[i].column == (enum cost_id)column)
			return 1;
	return column == COST_SPLITS;
}

/* Of files neither is seen: a page that comes back is told from one read for the first time by the
 * kernel alone, and moves and reclaim of the page cache name no mapping. */
int life_has_evidence(const struct origin *o, int column)
{
	int file = o->kind == ORIGIN_FILE || o->kind == ORIGIN_SHMEM;

	return !file || column == COST_MAJOR_FAULTS || column == COST_RECLAIM_STALL;
}

/* ---- owners ---- */

static u32 unplaced(struct replay *p, u32 space)
{
	return origin_get(p, ORIGIN_UNATTRIBUTED, space, 0, 0, "pages of unknown place");
}

/* Bytes of one page, of one mapping. */
static void charge_page(struct replay *p, u32 space, u32 mapping, u64 from, u64 to,
			enum cost_id column)
{
	u32 owner = page_owner(p, space, from, mapping), whose;
	struct ledger_piece piece;

	for (; from < to; from = piece.end) {
		piece.end = to;
		whose = owner;
		if (!p->r->no_alloc && p->owner != OWNER_FAULT &&
		    may_hold_allocs(p->origins[mapping].kind)) {
			ledger_piece(p->ledger, space, from, to, &piece);
			if (piece.state == LEDGER_LIVE)
				whose = origin_in(p, piece.origin, space);
		}
		if (whose)
			cost_add(&p->origins[whose].cost[column], 0, (s64)(piece.end - from));
	}
}

static void charge_pages(struct replay *p, u32 space, u64 at, u64 end, enum cost_id column)
{
	struct ledger_interval iv;
	u32 mapping = 0;
	u64 stop;

	for (iv.end = 0; at < end && !p->err; at = stop) {
		stop = at + MP_PAGE_SIZE;
		if (at >= iv.end)
			mapping = ledger_find(p->ledger, space, at, &iv)
					  ? origin_in(p, iv.origin, space)
					  : 0;
		if (mapping)
			charge_page(p, space, mapping, at, stop, column);
		else if ((mapping = unplaced(p, space)))
			cost_add(&p->origins[mapping].cost[column], 0, MP_PAGE_SIZE);
		if (p->origins[mapping].kind == ORIGIN_UNATTRIBUTED)
			iv.end = 0;
	}
}

/* Who has the page at addr; stack: who is named where nobody has. */
static u32 owner_at(struct replay *p, u32 space, u64 addr, u64 stack)
{
	struct ledger_interval iv;
	struct fault_cost f = {.space = space, .addr = addr};
	u32 fault = stack ? origin_get(p, ORIGIN_FAULT, space, stack, 0, NULL) : 0;

	if (!addr || !ledger_find(p->ledger, space, addr, &iv))
		return fault ? fault : unplaced(p, space);
	f.mapping = origin_in(p, iv.origin, space);
	f.fault = fault ? fault : page_owner(p, space, addr, f.mapping);
	return f.mapping ? alloc_fault_owner(p, &f) : 0;
}

void life_count(struct replay *p, u32 space, u64 addr, enum cost_id column)
{
	u32 owner = owner_at(p, space, addr, 0);

	if (owner)
		cost_add(&p->origins[owner].cost[column], 0, 1);
}

/* ---- records ---- */

static void on_edge(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_edge *ev = trace_body(rec, edge);
	u64 end = ev->addr + ev->pages * MP_PAGE_SIZE;

	switch (ev->kind) {
	case MP_EDGE_RECLAIMED:
		charge_pages(p, rec->space, ev->addr, end, COST_RECLAIMED);
		break;
	case MP_EDGE_REFAULTED:
		charge_pages(p, rec->space, ev->addr, end, COST_REFAULTED);
		break;
	case MP_EDGE_MIGRATED:
		charge_pages(p, rec->space, ev->addr, end, COST_MIGRATED);
		break;
	case MP_EDGE_COLLAPSED:
		life_count(p, rec->space, ev->addr, COST_COLLAPSES);
		break;
	case MP_EDGE_MAJOR:
		life_count(p, rec->space, ev->addr, COST_MAJOR_FAULTS);
		break;
	default:
		break;
	}
}

static void on_reclaim(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_reclaim *ev = trace_body(rec, reclaim);
	u32 owner = owner_at(p, rec->space, ev->addr, ev->stack);

	if (owner)
		cost_add(&p->origins[owner].cost[COST_RECLAIM_STALL], 0, (s64)ev->stall);
}

int life_apply(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_edge *ev = trace_body(rec, edge);

	/* Its space has gone from the ledger. */
	if (!space_get(p, rec->space))
		return 0;
	if (rec->type == MP_EV_EDGE && ev->kind == MP_EDGE_COLLAPSED && ev->addr &&
	    huge_add(p, rec->space, ev->addr))
		return p->err = -ENOMEM;
	if (!in_window(p, rec->time_ns))
		return 0;
	if (rec->type == MP_EV_EDGE)
		on_edge(p, rec);
	else
		on_reclaim(p, rec);
	return p->err;
}
