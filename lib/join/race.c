/* SPDX-License-Identifier: GPL-2.0-only
 * Pictures are not taken in a moment: mapping calls that ran while a part of one was read, and what
 * can be said of the ranges they concern. */
#include <errno.h>
#include <stdlib.h>
#include "lib/join/replay.h"

int add_race(struct replay *p, u32 space, u64 start, u64 end)
{
	struct race *r = realloc(p->races, (p->nr_races + 1) * sizeof(*r));

	if (!r)
		return -ENOMEM;
	p->races = r;
	r += p->nr_races++;
	r->space = space;
	r->start = start;
	r->end = end;
	return 0;
}

int racing(const struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i;

	if (is_doubted(p, space, start, end))
		return 1;
	/* A storm of mapping calls: cheaper, and never too strong, to doubt all of it. */
	if (p->nr_races > 1000)
		return 1;
	for (i = 0; i < p->nr_races; i++)
		if (p->races[i].space == space && p->races[i].start < end &&
		    start < p->races[i].end)
			return 1;
	return 0;
}

/* ---- parts of a picture ---- */

static int add_chunk(struct replay *p, const struct chunk *c)
{
	struct chunk *more = realloc(p->chunks, (p->nr_chunks + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	p->chunks = more;
	more[p->nr_chunks++] = *c;
	return 0;
}

/* When which part of the walk at item i was read; all of it at once where it names no chunks. */
static int find_chunks(struct replay *p, size_t i, u64 *ret_end)
{
	const struct mp_hdr *walk = replay_rec(p, i);
	struct chunk whole = {.end = ~0ull, .seq_begin = walk->seq, .seq_end = ~0ull};

	p->nr_chunks = 0;
	*ret_end = ~0ull;
	for (; i < p->pending.nr; i++) {
		const struct mp_hdr *rec = replay_rec(p, i);
		const struct mp_ev_chunk *c = trace_body(rec, chunk);
		struct chunk next = {c->start, c->end, rec->seq, c->seq_end};

		if (rec->space != walk->space)
			continue;
		if (rec->type == MP_EV_CHUNK && add_chunk(p, &next))
			return -ENOMEM;
		if (rec->type == MP_EV_WALK && trace_body(rec, walk)->end) {
			*ret_end = whole.seq_end = rec->seq;
			break;
		}
	}
	return p->nr_chunks ? 0 : add_chunk(p, &whole);
}

/* A change between entry and exit of a range that was read meanwhile. */
static int change(struct replay *p, u32 space, u64 start, u64 end, u64 entry, u64 exit)
{
	const struct chunk *c = p->chunks;
	int err = 0;

	for (; !err && c < p->chunks + p->nr_chunks; c++)
		if (entry <= c->seq_end && exit > c->seq_begin && start < c->end && end > c->start)
			err = add_race(p, space, start > c->start ? start : c->start,
				       end < c->end ? end : c->end);
	return err;
}

/* ---- mapped meanwhile ---- */

static int add_birth(struct replay *p, u64 start, u64 end, u64 entry, u32 origin, u64 from)
{
	struct birth *b = realloc(p->births, (p->nr_births + 1) * sizeof(*b));
	u32 i;

	if (!b)
		return -ENOMEM;
	p->births = b;
	b += p->nr_births++;
	*b = (struct birth){
		.start = start, .end = end, .origin = origin, .from = from, .order = p->nr_births};
	for (i = 0; i < p->nr_chunks; i++)
		if (start < p->chunks[i].end && end > p->chunks[i].start)
			b->seen |= entry <= p->chunks[i].seq_end;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct birth *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_births(struct replay *p)
{
	u64 reach = 0;
	u32 i;

	if (p->nr_births)
		qsort(p->births, p->nr_births, sizeof(*p->births), by_start);
	for (i = 0; i < p->nr_births; i++) {
		reach = p->births[i].end > reach ? p->births[i].end : reach;
		p->births[i].reach = reach;
	}
}

/* How many begin below addr. */
static u32 births_below(const struct replay *p, u64 addr)
{
	u32 lo = 0, hi = p->nr_births, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->births[mid].start < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Of several calls the first one counts. */
u32 born_meanwhile(const struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i = births_below(p, start + 1), first = ~0u, origin = 0;
	struct ledger_interval iv;

	for (; i && p->births[i - 1].reach >= end; i--) {
		const struct birth *b = &p->births[i - 1];

		if (!b->seen || b->end < end || b->order > first)
			continue;
		if (!b->origin && !ledger_find(p->ledger, space, b->from + (start - b->start), &iv))
			continue;
		first = b->order;
		origin = b->origin ? b->origin : iv.origin;
	}
	return origin;
}

int born_late(const struct replay *p, u64 start, u64 end)
{
	u32 n = births_below(p, end);

	return n && p->births[n - 1].reach > start;
}

/* A call may have taken effect on either side of the moment a page was read. One that entered
 * before the end may return after it. */
static int race_of(struct replay *p, const struct mp_hdr *rec, u64 end)
{
	const struct mp_ev_map *m = trace_body(rec, map);
	const struct mp_ev_unmap *u = trace_body(rec, unmap);
	const struct mp_ev_unmap_end *e = trace_body(rec, unmap_end);
	const struct mp_ev_remap *r = trace_body(rec, remap);
	int err;

	switch (rec->type) {
	case MP_EV_MAP:
		err = change(p, rec->space, m->start, m->end, m->seq_entry, rec->seq);
		if (!err && m->seq_entry <= end)
			err = add_birth(p, m->start, m->end, m->seq_entry, map_origin(p, rec), 0);
		return err;
	case MP_EV_UNMAP:
		return change(p, rec->space, u->start, u->end,
			      u->seq_entry ? u->seq_entry : rec->seq, rec->seq);
	case MP_EV_UNMAP_END:
		return change(p, rec->space, e->start, e->end, e->seq_entry, rec->seq);
	case MP_EV_REMAP:
		err = change(p, rec->space, r->old_start, r->old_start + r->old_len, r->seq_entry,
			     rec->seq);
		if (!err)
			err = change(p, rec->space, r->new_start, r->new_start + r->new_len,
				     r->seq_entry, rec->seq);
		if (!err && r->seq_entry <= end)
			err = add_birth(p, r->new_start, r->new_start + r->new_len, r->seq_entry, 0,
					r->old_start);
		return err;
	default:
		return 0;
	}
}

u64 call_entry(const struct mp_hdr *rec)
{
	switch (rec->type) {
	case MP_EV_MAP:
		return trace_body(rec, map)->seq_entry;
	case MP_EV_UNMAP:
		return trace_body(rec, unmap)->seq_entry ? trace_body(rec, unmap)->seq_entry
							 : rec->seq;
	case MP_EV_UNMAP_END:
		return trace_body(rec, unmap_end)->seq_entry;
	case MP_EV_REMAP:
		return trace_body(rec, remap)->seq_entry;
	default:
		return 0;
	}
}

static int by_space(const void *a, const void *b)
{
	const struct map_call *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return x->item < y->item ? -1 : x->item > y->item;
}

int index_calls(struct replay *p)
{
	u64 entry;
	size_t i;

	p->nr_calls = 0;
	for (i = 0; i < p->pending.nr; i++) {
		entry = call_entry(replay_rec(p, i));
		if (!entry)
			continue;
		if (p->nr_calls == p->cap_calls) {
			size_t cap = p->cap_calls ? 2 * p->cap_calls : 256;
			struct map_call *more = realloc(p->calls, cap * sizeof(*more));

			if (!more)
				return -ENOMEM;
			p->calls = more;
			p->cap_calls = cap;
		}
		p->calls[p->nr_calls++] = (struct map_call){replay_rec(p, i)->space, i, entry};
	}
	if (p->nr_calls)
		qsort(p->calls, p->nr_calls, sizeof(*p->calls), by_space);
	for (i = p->nr_calls; i-- > 1;)
		if (p->calls[i - 1].space == p->calls[i].space &&
		    p->calls[i - 1].earliest > p->calls[i].earliest)
			p->calls[i - 1].earliest = p->calls[i].earliest;
	return 0;
}

/* The first call of this space behind item i. */
static size_t calls_behind(const struct replay *p, u32 space, size_t i)
{
	struct map_call key = {.space = space, .item = i};
	size_t lo = 0, hi = p->nr_calls;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (by_space(&p->calls[mid], &key) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t calls_after(const struct replay *p, u32 space, u64 seq)
{
	size_t lo = 0, hi = p->pending.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->pending.items[mid].seq <= seq)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? calls_behind(p, space, lo - 1) : 0;
}

int find_races(struct replay *p, size_t i)
{
	u64 begin = p->pending.items[i].seq, end;
	u32 space = replay_rec(p, i)->space;
	size_t k = calls_behind(p, space, i);
	int err = find_chunks(p, i, &end);

	p->nr_races = p->nr_births = 0;
	for (; k < p->nr_calls && p->calls[k].space == space && p->calls[k].earliest <= end && !err;
	     k++)
		if (p->pending.items[p->calls[k].item].seq > begin)
			err = race_of(p, replay_rec(p, p->calls[k].item), end);
	sort_births(p);
	return err;
}

/* ---- unmapped meanwhile ---- */

/* The ledger drops a range when its munmap enters; until it returns the pages may still be there.
 */
int unmap_begins(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_unmap *u = trace_body(rec, unmap);
	struct ledger_interval iv;
	struct leaving *l;
	u64 at = u->start;

	/* brk, sent when it has returned. */
	if (u->seq_entry)
		return 0;
	for (; at < u->end && ledger_next(p->ledger, rec->space, at, &iv) && iv.start < u->end;
	     at = iv.end) {
		l = realloc(p->leaving, (p->nr_leaving + 1) * sizeof(*l));
		if (!l)
			return -ENOMEM;
		p->leaving = l;
		l[p->nr_leaving++] = (struct leaving){
			.space = rec->space,
			.origin = iv.origin,
			.start = iv.start > u->start ? iv.start : u->start,
			.end = iv.end < u->end ? iv.end : u->end,
			.seq = rec->seq,
		};
	}
	return 0;
}

/* What a picture gave back to the former owner is gone for good; but for what was mapped since. */
int unmap_ends(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_unmap_end *e = trace_body(rec, unmap_end);
	u32 i, kept = 0;
	int err = 0;

	for (i = 0; i < p->nr_leaving; i++) {
		struct leaving *l = &p->leaving[i];

		if (l->space != rec->space || l->seq != e->seq_entry)
			p->leaving[kept++] = *l;
		else if (!err && l->claimed)
			err = ledger_unmap(p->ledger, l->space, l->start, l->end);
	}
	p->nr_leaving = kept;
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

void unmap_is_done(struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i, kept = 0;

	for (i = 0; i < p->nr_leaving; i++) {
		const struct leaving *l = &p->leaving[i];

		if (l->space != space || l->start >= end || start >= l->end)
			p->leaving[kept++] = *l;
	}
	p->nr_leaving = kept;
}

u64 leaving_until(const struct replay *p, u32 space, u64 at, u64 end)
{
	u32 i;

	for (i = 0; i < p->nr_leaving; i++) {
		const struct leaving *l = &p->leaving[i];

		if (l->space != space)
			continue;
		if (l->start > at && l->start < end)
			end = l->start;
		else if (l->start <= at && l->end > at && l->end < end)
			end = l->end;
	}
	return end;
}

u32 still_leaving(struct replay *p, u32 space, u64 start, u64 end)
{
	u32 i;

	for (i = 0; i < p->nr_leaving; i++) {
		struct leaving *l = &p->leaving[i];

		if (l->space == space && l->start <= start && end <= l->end) {
			l->claimed = 1;
			return l->origin;
		}
	}
	return 0;
}
