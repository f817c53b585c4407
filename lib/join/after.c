/* SPDX-License-Identifier: GPL-2.0-only
 * What came behind the last picture of a recording that did not end with one: it was killed, its
 * file is full, its target has gone. Rows that nothing happened to stay as they were; of the others
 * the picture's number is no more than an inference, with what they may have gained as its bound.
 */
#define _GNU_SOURCE
#include <string.h>
#include "lib/join/replay.h"

void after_begin(struct replay *p)
{
	int ended = p->r->end == MP_END_DURATION || p->r->end == MP_END_SIGNAL;

	p->unfinished = !p->open && !ended;
}

static void touch(struct replay *p, u32 origin, u32 space, u64 seq)
{
	u32 row = origin ? origin_in(p, origin, space) : 0;

	if (row)
		p->origins[row].last_seq = seq;
}

static void touch_range(struct replay *p, u32 space, u64 start, u64 end, u64 seq)
{
	struct ledger_interval iv;

	for (; start < end && ledger_next(p->ledger, space, start, &iv) && iv.start < end;
	     start = iv.end)
		touch(p, iv.origin, space, seq);
}

/* Before the record is applied. */
void after_note(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_map *m = trace_body(rec, map);
	const struct mp_ev_unmap *u = trace_body(rec, unmap);
	const struct mp_ev_remap *r = trace_body(rec, remap);
	const struct mp_ev_advise *a = trace_body(rec, advise);
	const struct mp_ev_fault *f = trace_body(rec, fault);
	const struct mp_ev_resource *n = trace_body(rec, resource);
	const struct mp_ev_edge *e = trace_body(rec, edge);
	struct space_state *s = p->unfinished ? space_get(p, rec->space) : NULL;

	if (!s)
		return;
	switch (rec->type) {
	case MP_EV_MAP:
		s->grew += m->end - m->start;
		touch_range(p, s->id, m->start, m->end, rec->seq);
		touch(p, map_origin(p, rec), s->id, rec->seq);
		break;
	case MP_EV_UNMAP:
		touch_range(p, s->id, u->start, u->end, rec->seq);
		break;
	case MP_EV_REMAP:
		s->grew += r->new_len;
		touch_range(p, s->id, r->old_start, r->old_start + r->old_len, rec->seq);
		touch_range(p, s->id, r->new_start, r->new_start + r->new_len, rec->seq);
		break;
	case MP_EV_ADVISE:
		touch_range(p, s->id, a->start, a->end, rec->seq);
		break;
	case MP_EV_RESOURCE:
	case MP_EV_RESOURCE_END: /* both begin with the range */
		touch_range(p, s->id, n->start, n->end, rec->seq);
		break;
	case MP_EV_FAULT:
		s->gained += MP_PAGE_SIZE << (f->order < 20 ? f->order : 0);
		touch_range(p, s->id, f->addr, f->addr + 1, rec->seq);
		break;
	case MP_EV_EDGE:
		touch_range(p, s->id, e->addr, e->addr + e->pages * MP_PAGE_SIZE, rec->seq);
		break;
	default:
		break;
	}
}

int after_is_late(struct replay *p, u32 space, u64 seq)
{
	const struct space_state *s = p->unfinished ? space_get(p, space) : NULL;

	return s && s->picture_seq && seq > s->picture_seq;
}

/* Who got something by the record, now that it is applied. */
void after_owner(struct replay *p, u32 origin, const struct mp_hdr *rec)
{
	if (p->unfinished)
		touch(p, origin, rec->space, rec->seq);
}

/* A child that no picture shows may hold all that its parent had. */
void after_fork(struct replay *p, struct space_state *child)
{
	struct ledger_interval iv;
	u64 at = 0;

	if (!p->unfinished || !child->parent)
		return;
	for (; ledger_next(p->ledger, child->id, at, &iv); at = iv.end)
		child->grew += iv.end - iv.start;
}

void after_picture(struct space_state *s, u64 seq)
{
	s->picture_seq = seq;
	s->grew = s->gained = 0;
}

static int is_after(struct replay *p, const struct origin *o)
{
	const struct space_state *s = p->unfinished ? space_get(p, o->space) : NULL;

	return s && (o->base ? &p->origins[o->base] : o)->last_seq > s->picture_seq;
}

static void doubt(struct cost *c)
{
	c->inferred += c->exact;
	c->exact = c->counted = 0;
	c->open = 1;
}

void after_costs(struct replay *p, const struct origin *o, struct cost *costs)
{
	int c;

	if (!is_after(p, o))
		return;
	for (c = 0; c < COST_MAX; c++)
		if ((cost_columns[c].kind == COST_STOCK || c == COST_GROWN) && costs[c].known)
			doubt(&costs[c]);
}

void after_bound(struct replay *p, const struct origin *o, struct cost *costs)
{
	s64 reserved = cost_value(&costs[COST_RESERVED]), more;
	struct space_state *s = space_get(p, o->space);
	int c;

	if (!is_after(p, o))
		return;
	for (c = 0; c < COST_MAX; c++) {
		if ((cost_columns[c].kind != COST_STOCK && c != COST_GROWN) || c == COST_IDLE)
			continue;
		more = (s64)s->grew + (c == COST_RESERVED ? 0 : (s64)s->gained);
		if (reserved + more > costs[c].hi)
			costs[c].hi = reserved + more;
	}
}

void after_totals(struct replay *p, struct report *r)
{
	s64 more = 0;
	u32 i, c;

	for (i = 0; i < p->nr_spaces; i++)
		more += (s64)(p->spaces[i].grew + p->spaces[i].gained);
	/* Of a target that went, the picture is what it had. */
	if (!p->unfinished || !more || r->end == MP_END_TARGET)
		return;
	for (c = 0; c < CLASS_MAX; c++) {
		doubt(&r->classes[c]);
		r->classes[c].hi += more;
	}
	for (c = 0; c < COST_MAX; c++)
		if ((cost_columns[c].kind == COST_STOCK || c == COST_GROWN) && c != COST_IDLE) {
			/* Its rows are in doubt already. */
			r->total[c].counted = 0;
			r->total[c].open = 1;
			r->total[c].hi += more;
		}
}
