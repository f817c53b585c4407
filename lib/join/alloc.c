/* SPDX-License-Identifier: GPL-2.0-only
 * What allocators' events mean: whose bytes of a mapping are, and were. */
#include <errno.h>
#include <stdlib.h>
#include "lib/join/replay.h"

/* ---- events ---- */

static int grow(void **array, size_t nr, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;
	void *to;

	if (nr < *cap)
		return 0;
	to = reallocarray(*array, more, size);
	if (!to)
		return -ENOMEM;
	*array = to;
	*cap = more;
	return 0;
}

/* What the ledger cannot hold, of a space it does not know, is no error of the recording. */
static int harmless(int err)
{
	return err == -EINVAL || err == -ENOENT || err > 0 ? 0 : err;
}

/* Faults of the thread since its call began: those on the new block are the block's. */
static void settle(struct replay *p, u32 space, u32 tid, u64 seq_entry, u64 start, u64 end,
		   u32 origin)
{
	size_t i, kept = 0;

	for (i = 0; i < p->nr_held; i++) {
		struct fault_cost *f = &p->held[i];

		if (f->space != space || f->tid != tid) {
			p->held[kept++] = *f;
			continue;
		}
		if (f->seq > seq_entry && f->addr >= start && f->addr < end &&
		    may_hold_allocs(p->origins[f->mapping].kind) && p->owner != OWNER_FAULT)
			charge_fault(p, origin, f);
		else
			charge_fault(p, alloc_fault_owner(p, f), f);
	}
	p->nr_held = kept;
}

static int is_born(struct replay *p, const struct mp_hdr *rec, const struct mp_ev_realloc *ev)
{
	u32 origin = origin_get(p, ORIGIN_MALLOC, rec->space, ev->stack, 0,
				ev->stack ? NULL : "[no stack]");
	int err;

	if (!origin)
		return p->err;
	settle(p, rec->space, ev->tid, ev->seq_entry, ev->addr, ev->addr + ev->bytes, origin);
	p->origins[origin].generations++;
	err = ledger_alloc(p->ledger, rec->space, ev->family, ev->addr, ev->bytes, origin,
			   rec->seq);
	return harmless(err);
}

static int on_alloc(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_alloc *ev = trace_body(rec, alloc);
	const struct mp_ev_realloc as = {
		.addr = ev->addr,
		.bytes = ev->bytes,
		.seq_entry = ev->seq_entry,
		.stack = ev->stack,
		.tid = ev->tid,
		.family = ev->family,
	};

	return is_born(p, rec, &as);
}

/* One of many. Whose its faults were is not told: most are of others. */
static int on_sample(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_sample *ev = trace_body(rec, sample);
	u32 origin = origin_get(p, ORIGIN_MALLOC, rec->space, ev->stack, 0,
				ev->stack ? NULL : "[no stack]");
	float weight = ev->bytes && ev->weighted > ev->bytes
			       ? (float)((double)ev->weighted / (double)ev->bytes)
			       : 1;

	if (!origin)
		return p->err;
	p->origins[origin].generations++;
	return harmless(ledger_sample(p->ledger, rec->space, ev->family, ev->addr, ev->bytes,
				      origin, rec->seq, weight));
}

/* Another thread may have got the old place before this one returned: what was born since it
 * entered is not its own. */
static int on_realloc(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_realloc *ev = trace_body(rec, realloc);
	int err = ledger_alloc_end(p->ledger, rec->space, ev->family, ev->old_addr, ev->seq_entry);

	err = harmless(err);
	return err || !ev->addr ? err : is_born(p, rec, ev);
}

int alloc_apply(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_free *ev = trace_body(rec, free);

	if (rec->type == MP_EV_ALLOC)
		return on_alloc(p, rec);
	if (rec->type == MP_EV_REALLOC)
		return on_realloc(p, rec);
	if (rec->type == MP_EV_SAMPLE)
		return on_sample(p, rec);
	return harmless(ledger_alloc_end(p->ledger, rec->space, ev->family, ev->addr, rec->seq));
}

/* ---- faults ---- */

int may_hold_allocs(enum origin_kind mapping)
{
	return mapping == ORIGIN_MMAP || mapping == ORIGIN_BRK || mapping == ORIGIN_PREEXISTING ||
	       mapping == ORIGIN_UNATTRIBUTED;
}

/* A page that was not there has nothing freed on it. One that was is the same by a copy, and by
 * what came back from swap; but what went without our knowing did not come back as it was. */
int alloc_fault(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_fault *ev = trace_body(rec, fault);
	u64 bytes = MP_PAGE_SIZE << (ev->order < 20 ? ev->order : 0);
	u64 start = ev->addr / bytes * bytes;

	if (p->r->no_alloc || ev->member == 255)
		return 0;
	return harmless(ledger_page(p->ledger, rec->space, ev->addr)
				? ledger_doubt_freed(p->ledger, rec->space, start, start + bytes)
				: ledger_forget_freed(p->ledger, rec->space, start, start + bytes));
}

u32 alloc_fault_owner(struct replay *p, const struct fault_cost *f)
{
	enum origin_kind kind = p->origins[f->mapping].kind;
	struct ledger_piece piece;

	if (!p->r->no_alloc && p->owner != OWNER_FAULT && may_hold_allocs(kind)) {
		ledger_piece(p->ledger, f->space, f->addr, f->addr + 1, &piece);
		if (piece.state == LEDGER_LIVE && piece.weight <= 1)
			return origin_in(p, piece.origin, f->space);
	}
	return faults_are_of_mapping(p, kind) ? f->mapping : f->fault;
}

int alloc_hold(struct replay *p, const struct fault_cost *f)
{
	int err = grow((void **)&p->held, p->nr_held, &p->cap_held, sizeof(*p->held));

	if (!err)
		p->held[p->nr_held++] = *f;
	return err;
}

void alloc_release(struct replay *p)
{
	size_t i;

	for (i = 0; i < p->nr_held; i++)
		charge_fault(p, alloc_fault_owner(p, &p->held[i]), &p->held[i]);
	p->nr_held = 0;
}

/* ---- while a picture is taken ---- */

static int add_busy(struct replay *p, u64 start, u64 end)
{
	int err = 0;

	if (start >= end)
		return 0;
	err = grow((void **)&p->busy, p->nr_busy, &p->cap_busy, sizeof(*p->busy));
	if (!err)
		p->busy[p->nr_busy++] = (struct busy){start, end};
	return err;
}

/* What lies at addr now and is given back meanwhile. */
static int busy_until_freed(struct replay *p, u32 space, u64 addr)
{
	struct ledger_piece piece;

	ledger_piece(p->ledger, space, addr, ~0ull, &piece);
	return piece.state == LEDGER_LIVE ? add_busy(p, addr, piece.end) : 0;
}

/* A call that entered before the end of the picture may have got its block before it returned. */
static int find_busy(struct replay *p, const struct mp_hdr *rec, u64 end)
{
	const struct mp_ev_alloc *a = trace_body(rec, alloc);
	const struct mp_ev_realloc *r = trace_body(rec, realloc);
	const struct mp_ev_free *f = trace_body(rec, free);
	const struct mp_ev_resource *n = trace_body(rec, resource);
	int err = 0;

	/* Both begin with the range. */
	if ((rec->type == MP_EV_RESOURCE || rec->type == MP_EV_RESOURCE_END) && rec->seq <= end)
		return add_busy(p, n->start, n->end);
	if (rec->type == MP_EV_ALLOC && a->seq_entry <= end)
		return add_busy(p, a->addr, a->addr + a->bytes);
	if (rec->type == MP_EV_FREE && rec->seq <= end)
		return busy_until_freed(p, rec->space, f->addr);
	if (rec->type == MP_EV_REALLOC && r->seq_entry <= end) {
		err = busy_until_freed(p, rec->space, r->old_addr);
		return err ? err : add_busy(p, r->addr, r->addr + r->bytes);
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int alloc_find_busy(struct replay *p, size_t i)
{
	const struct mp_hdr *walk = replay_rec(p, i);
	u64 end = ~0ull;
	size_t k, n = 0;
	int err = 0;

	p->nr_busy = 0;
	for (k = i + 1; k < p->pending.nr && end == ~0ull; k++) {
		const struct mp_hdr *rec = replay_rec(p, k);

		if (rec->type == MP_EV_WALK && rec->space == walk->space)
			end = rec->seq;
	}
	for (k = i + 1; k < p->pending.nr && !err; k++)
		if (replay_rec(p, k)->space == walk->space && replay_rec(p, k)->seq > walk->seq)
			err = find_busy(p, replay_rec(p, k), end);
	if (err || !p->nr_busy)
		return err;
	qsort(p->busy, p->nr_busy, sizeof(*p->busy), by_start);
	for (k = 1; k < p->nr_busy; k++)
		if (p->busy[k].start > p->busy[n].end)
			p->busy[++n] = p->busy[k];
		else if (p->busy[k].end > p->busy[n].end)
			p->busy[n].end = p->busy[k].end;
	p->nr_busy = n + 1;
	return 0;
}

int alloc_is_busy(const struct replay *p, u64 at, u64 *end)
{
	size_t lo = 0, hi = p->nr_busy, mid;
	u64 next;
	int is;

	/* The first that ends behind at. */
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->busy[mid].end <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == p->nr_busy)
		return 0;
	is = p->busy[lo].start <= at;
	next = is ? p->busy[lo].end : p->busy[lo].start;
	if (next < *end)
		*end = next;
	return is;
}
