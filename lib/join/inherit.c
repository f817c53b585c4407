/* SPDX-License-Identifier: GPL-2.0-only
 * A fork copies the parent's mappings some time between its entry and the moment the child is
 * announced. What the parent's other threads map or unmap meanwhile the child may have or not. */
#include <errno.h>
#include <stdlib.h>
#include "lib/join/replay.h"

static int doubt(struct replay *p, u32 space, u64 start, u64 end, u32 origin)
{
	struct doubt *d = realloc(p->doubts, (p->nr_doubts + 1) * sizeof(*d));

	if (!d)
		return -ENOMEM;
	p->doubts = d;
	d[p->nr_doubts++] =
		(struct doubt){.space = space, .origin = origin, .start = start, .end = end};
	return 0;
}

static int doubt_call(struct replay *p, u32 child, const struct mp_hdr *rec)
{
	const struct mp_ev_map *m = trace_body(rec, map);
	const struct mp_ev_unmap *u = trace_body(rec, unmap);
	const struct mp_ev_unmap_end *e = trace_body(rec, unmap_end);
	const struct mp_ev_remap *r = trace_body(rec, remap);
	int err;

	switch (rec->type) {
	case MP_EV_MAP:
		return doubt(p, child, m->start, m->end, map_origin(p, rec));
	case MP_EV_UNMAP:
		return doubt(p, child, u->start, u->end, 0);
	case MP_EV_UNMAP_END:
		return doubt(p, child, e->start, e->end, 0);
	case MP_EV_REMAP:
		err = doubt(p, child, r->old_start, r->old_start + r->old_len, 0);
		return err ? err : doubt(p, child, r->new_start, r->new_start + r->new_len, 0);
	default:
		return 0;
	}
}

/* What is being unmapped in the parent may go on living in the child. */
static int keep_leaving(struct replay *p, u32 parent, u32 child)
{
	u32 i, n = p->nr_leaving;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		struct leaving l = p->leaving[i];

		if (l.space != parent)
			continue;
		err = doubt(p, child, l.start, l.end, l.origin);
	}
	return err;
}

int inherit(struct replay *p, const struct mp_hdr *fork)
{
	const struct mp_ev_space *ev = trace_body(fork, space);
	size_t k;
	int err;

	/* When it entered is not known, or calls of that time have been applied and dropped. */
	if (!ev->seq_entry || ev->seq_entry <= p->applied)
		return ev->seq_entry ? doubt(p, fork->space, 0, ~0ull, 0) : 0;
	err = keep_leaving(p, ev->parent, fork->space);
	for (k = calls_after(p, ev->parent, ev->seq_entry);
	     k < p->nr_calls && p->calls[k].space == ev->parent &&
	     p->calls[k].earliest <= fork->seq && !err;
	     k++) {
		const struct mp_hdr *rec = replay_rec(p, p->calls[k].item);

		if (call_entry(rec) <= fork->seq)
			err = doubt_call(p, fork->space, rec);
	}
	return err;
}

int is_doubted(const struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i;

	for (i = 0; i < p->nr_doubts; i++)
		if (p->doubts[i].space == space && p->doubts[i].start < end &&
		    start < p->doubts[i].end)
			return 1;
	return 0;
}

u32 inherited_from(const struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i, origin = 0;

	for (i = 0; i < p->nr_doubts; i++) {
		const struct doubt *d = &p->doubts[i];

		if (d->space != space || d->start > start || d->end < end || !d->origin)
			continue;
		/* Two calls, either of which may have come before: nobody is named. */
		if (origin && origin != d->origin)
			return 0;
		origin = d->origin;
	}
	return origin;
}

void doubts_end(struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i, kept = 0;

	for (i = 0; i < p->nr_doubts; i++) {
		const struct doubt *d = &p->doubts[i];

		if (d->space != space || d->start < start || d->end > end)
			p->doubts[kept++] = *d;
	}
	p->nr_doubts = kept;
}
