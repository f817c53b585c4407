/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/access.h"

#define BLOCK	   512u
#define MAX_BLOCKS (1u << 20) /* 2 TiB resident */

enum state {
	MET = 1, /* in the latest picture */
	HUGE = 2, /* and there by a huge entry */
	COVERED = 4, /* watched since the latest clear */
	WATCHED = 8, /* and never lost sight of since */
	SEEN = 16, /* touched, and counted */
	NEW = 32, /* first seen touched by the latest picture */
	HIT = 64, /* touched since the latest clear */
	NOW = 128, /* which the latest picture is the first to say */
	FAULTED = 256, /* a fault named it since the latest clear */
	LATE = 512, /* watched from a later clear than the first on */
};

struct block {
	u64 first; /* page number */
	u16 state[BLOCK];
};

struct access_space {
	u32 cycles; /* CLEARs */
	u32 cleared; /* the walk before the latest */
	u32 walk; /* the one at hand */
	int read; /* a picture came behind one */
	u64 first_seq; /* of the first of them */
	int late; /* that was not before the recorded time */
	struct block **blocks; /* by their first page */
	size_t n, cap, near;
};

/* ---- pages ---- */

static struct access_space *find(struct replay *p, u32 space)
{
	const struct space_state *s = space_get(p, space);

	return s ? s->access : NULL;
}

/* NULL: no memory, or no such space. */
static struct access_space *get(struct replay *p, u32 space)
{
	struct space_state *s = space_get(p, space);

	if (s && !s->access)
		s->access = calloc(1, sizeof(*s->access));
	return s ? s->access : NULL;
}

/* The first block that ends behind this page. */
static size_t block_at(const struct access_space *a, u64 page)
{
	size_t lo = 0, hi = a->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (a->blocks[mid]->first + BLOCK <= page)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static u16 *state_of(struct access_space *a, u64 page, int make)
{
	size_t i = a->near;
	struct block **more, *b;

	if (i >= a->n || page - a->blocks[i]->first >= BLOCK)
		i = block_at(a, page);
	a->near = i;
	if (i < a->n && page >= a->blocks[i]->first)
		return &a->blocks[i]->state[page - a->blocks[i]->first];
	if (!make)
		return NULL;
	if (a->n == MAX_BLOCKS)
		return NULL;
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 64;

		more = realloc(a->blocks, cap * sizeof(*more));
		if (!more)
			return NULL;
		a->blocks = more;
		a->cap = cap;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->first = page / BLOCK * BLOCK;
	memmove(a->blocks + i + 1, a->blocks + i, (a->n++ - i) * sizeof(*a->blocks));
	a->blocks[i] = b;
	return &b->state[page - b->first];
}

static void each_page(struct access_space *a, void (*fn)(struct access_space *a, u16 *state))
{
	size_t i;
	u32 k;

	for (i = 0; i < a->n; i++)
		for (k = 0; k < BLOCK; k++)
			fn(a, &a->blocks[i]->state[k]);
}

/* ---- the recording ---- */

int access_note(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_accessed *seen = trace_body(rec, accessed);
	const struct mp_ev_clear *c = trace_body(rec, clear);

	if (rec->type == MP_EV_CLEAR) {
		/* What is touched between being read and cleared is lost, but for the first time.
		 */
		if (p->r->access.clears++ && c->walk != p->first_clear)
			p->r->access.doubts |= MP_DOUBT_GAP;
		else
			p->first_clear = c->walk;
		p->r->access.doubts |= c->doubts;
		if (c->took > p->r->access.took_ns)
			p->r->access.took_ns = c->took;
	} else {
		p->r->access.doubts |= seen->doubts;
		if (seen->walk > p->accounted)
			p->accounted = seen->walk;
	}
	return 0;
}

void access_begin(struct replay *p, u32 final)
{
	if (p->r->access.clears && p->accounted < final)
		p->r->access.doubts |= MP_DOUBT_UNKNOWN;
}

int access_watches(struct replay *p, u32 space)
{
	const struct access_space *a = find(p, space);

	return a && a->cycles;
}

int access_known(struct replay *p, u32 space)
{
	const struct access_space *a = find(p, space);

	return a && a->read;
}

/* May a bit of this space be gone, or another page be where no event says so? */
static int doubted(struct replay *p, u32 space)
{
	const struct space_state *s = space_get(p, space);

	return p->r->access.doubts || p->blind || !s || s->lost[MP_CLASS_PAGE] ||
	       lost_calls(p, space);
}

/* ---- pictures ---- */

static void unmet(struct access_space *a, u16 *state)
{
	(void)a;
	*state &= (u16)~MET;
}

void access_walk(struct replay *p, u32 space, u32 walk)
{
	struct access_space *a = find(p, space);

	if (!a)
		return;
	a->walk = walk;
	each_page(a, unmet);
}

/* Bits of a walk that a CLEAR came behind are of the time before. */
static void show(u16 *state, u32 flags, int sure)
{
	u16 s = *state & (u16) ~(NEW | NOW);
	u16 huge = flags & MP_PAGE_THP ? HUGE : 0;

	/* Split and collapse hand the bit of one page to others. */
	if (!sure || huge != (s & HUGE))
		s &= (u16) ~(COVERED | WATCHED | LATE);
	if (s & COVERED && flags & MP_PAGE_YOUNG && !(s & SEEN))
		s |= SEEN | NEW;
	if (!(s & HIT) && (s & FAULTED || (s & COVERED && flags & MP_PAGE_YOUNG)))
		s |= HIT | NOW;
	*state = (u16)((s & ~HUGE) | huge | MET);
}

int access_run(struct replay *p, u32 space, const struct mp_ev_run *run)
{
	struct access_space *a = p->r->access.clears ? get(p, space) : NULL;
	u64 page = run->start / MP_PAGE_SIZE;
	int sure = !(run->flags & (MP_PAGE_RACING | MP_PAGE_MIGRATING)) &&
		   !racing(p, space, run->start, run->start + run->pages * MP_PAGE_SIZE);
	int after = !a || !a->cleared || a->walk != a->cleared;
	u32 i;

	if (!p->r->access.clears || !(run->flags & MP_PAGE_RESIDENT))
		return 0;
	for (i = 0; i < run->pages; i++) {
		u16 *state = a ? state_of(a, page + i, 1) : NULL;

		if (!state)
			return -ENOMEM;
		show(state, run->flags & (after ? ~0u : ~(u32)MP_PAGE_YOUNG), sure);
	}
	return 0;
}

/* Bytes of a page that may have been touched unseen, to the owner of their mapping. */
static void unseen(struct replay *p, u32 space, u64 addr)
{
	struct ledger_interval iv;
	u32 owner;

	if (!ledger_find(p->ledger, space, addr, &iv))
		return;
	owner = origin_in(p, iv.origin, space);
	if (owner)
		p->origins[owner].unseen += MP_PAGE_SIZE;
}

/* What was watched and is not there any more went unannounced. */
void access_walk_end(struct replay *p, u32 space, u32 walk)
{
	struct access_space *a = find(p, space);
	size_t i;
	u32 k;

	/* The CLEAR comes before the end of the walk that it is behind. */
	if (!a || !a->cycles || a->cleared == walk)
		return;
	a->read = 1;
	for (i = 0; i < a->n; i++)
		for (k = 0; k < BLOCK; k++) {
			u16 *state = &a->blocks[i]->state[k];

			if (*state & MET || !(*state & COVERED))
				continue;
			if (!(*state & SEEN))
				unseen(p, space, (a->blocks[i]->first + k) * MP_PAGE_SIZE);
			*state &= (u16) ~(COVERED | WATCHED | LATE);
		}
}

static void watch(struct access_space *a, u16 *state)
{
	u16 s = *state & (u16) ~(COVERED | HIT | NEW | NOW | FAULTED);

	if (s & MET)
		s |= COVERED;
	if (s & MET && !(s & WATCHED))
		s |= a->cycles == 1 && !a->late ? WATCHED : WATCHED | LATE;
	*state = s;
}

int access_clear(struct replay *p, const struct mp_hdr *rec)
{
	struct access_space *a = get(p, rec->space);

	if (a)
		a->cleared = trace_body(rec, clear)->walk;
	if (!a)
		return space_get(p, rec->space) ? -ENOMEM : 0;
	if (!a->cycles++) {
		a->first_seq = rec->seq;
		a->late = !p->window_begin || rec->time_ns > p->window_begin;
	}
	each_page(a, watch);
	return 0;
}

/* ---- events ---- */

void access_drop(struct replay *p, u32 space, u64 start, u64 end, int forget)
{
	struct access_space *a = p->r->access.clears ? find(p, space) : NULL;
	struct ledger_interval iv;
	u64 first = start / MP_PAGE_SIZE, last = (end + MP_PAGE_SIZE - 1) / MP_PAGE_SIZE, page;
	size_t i;

	if (!a)
		return;
	for (; a->cycles && start < end && ledger_next(p->ledger, space, start, &iv) &&
	       iv.start < end;
	     start = iv.end)
		p->origins[origin_in(p, iv.origin, space)].stirred = 1;
	for (i = block_at(a, first); i < a->n && a->blocks[i]->first < last; i++)
		for (page = a->blocks[i]->first; page < a->blocks[i]->first + BLOCK; page++) {
			u16 *state = &a->blocks[i]->state[page - a->blocks[i]->first];

			if (page < first || page >= last)
				continue;
			if (*state & COVERED && !(*state & SEEN))
				unseen(p, space, page * MP_PAGE_SIZE);
			*state = forget ? 0 : *state & (u16) ~(COVERED | WATCHED | LATE | MET);
		}
}

int access_fault(struct replay *p, u32 space, u64 addr)
{
	struct access_space *a = get(p, space);
	u16 *state = a ? state_of(a, addr / MP_PAGE_SIZE, 1) : NULL;
	int first;

	if (!state)
		return -ENOMEM;
	first = !(*state & SEEN);
	*state |= SEEN | FAULTED;
	return first;
}

/* ---- costs ---- */

static enum cost_part weaker(enum cost_part a, enum cost_part b)
{
	return a < b ? a : b;
}

/* A huge page has one bit: that it was touched is known of one small page in it at least. */
static void charge_touch(struct replay *p, const struct access_lot *lot, u16 state, u64 at,
			 s64 bytes, enum cost_part part)
{
	struct cost *c = p->origins[lot->owner].cost;

	if (state & HUGE)
		part = at % (BLOCK * MP_PAGE_SIZE) ? PART_INFERRED : weaker(part, PART_COUNTED);
	if (state & NEW) {
		part_add(&c[COST_TOUCHED], part, bytes);
		p->r->access.huge += state & HUGE ? (u64)bytes : 0;
	}
	if (state & NOW)
		part_add(&c[COST_ACCESS], part, bytes);
}

/* Where several own a page it was touched, but not known to be by which: each has at most its
 * bytes. */
static void charge_page(struct replay *p, struct access_space *a, const struct access_lot *lot,
			u64 at, u64 to)
{
	u16 *state = state_of(a, at / MP_PAGE_SIZE, 0);
	struct origin *o = &p->origins[lot->owner];
	int shared = to - at < MP_PAGE_SIZE || lot->birth > a->first_seq;
	int doubt = doubted(p, lot->space);

	if (!state)
		return;
	if (*state & (NEW | NOW))
		charge_touch(p, lot, *state, at, (s64)(to - at),
			     shared  ? PART_INFERRED
			     : doubt ? weaker(lot->part, PART_COUNTED)
				     : lot->part);
	if (!lot->final || *state & SEEN)
		return;
	if (*state & WATCHED)
		part_add(&o->cost[COST_COLD],
			 shared || doubt || *state & LATE ? PART_INFERRED : lot->part,
			 (s64)(to - at));
	if (!(*state & WATCHED))
		o->unseen += to - at;
	else if (*state & LATE)
		o->late += to - at;
}

void access_charge(struct replay *p, const struct access_lot *lot, u64 from, u64 to)
{
	struct access_space *a = find(p, lot->space);
	u64 next;

	for (; a && a->cycles && from < to; from = next) {
		next = (from | (MP_PAGE_SIZE - 1)) + 1;
		next = next < to ? next : to;
		charge_page(p, a, lot, from, next);
	}
}

void access_costs(struct replay *p, const struct origin *o, struct cost *costs)
{
	const struct access_space *a = find(p, o->space);
	int open, i;

	if (!a || !a->read)
		return;
	/* A page may have been touched before its bytes were named, or lost another name. */
	for (i = 0; i < COST_MAX && o->resource; i++)
		if (i == COST_TOUCHED || i == COST_ACCESS || i == COST_COLD) {
			costs[i].inferred += costs[i].exact;
			costs[i].exact = costs[i].counted = 0;
		}
	open = doubted(p, o->space) || o->unseen || o->late || o->stirred || o->resource;
	for (i = 0; i < COST_MAX; i++)
		if (i == COST_TOUCHED || i == COST_ACCESS || i == COST_COLD)
			costs[i].open = costs[i].known && open;
	costs[COST_ACCESS].exact /= a->cycles;
	costs[COST_ACCESS].inferred /= a->cycles;
	costs[COST_ACCESS].counted /= a->cycles;
}

/* Bytes that may have been touched beyond those seen. */
static s64 doubtful(struct replay *p, const struct origin *o, const struct cost *costs)
{
	return (s64)o->unseen +
	       (doubted(p, o->space) ? cost_value(&costs[COST_COLD]) : (s64)o->late);
}

void access_bound(struct replay *p, const struct origin *o, struct cost *costs)
{
	const struct access_space *a = find(p, o->space);
	s64 more;

	if (!a || !a->read)
		return;
	more = doubtful(p, o, costs);
	/* A mapping that changed may have been touched wherever it was. */
	if (!o->stirred && !o->resource)
		costs[COST_TOUCHED].hi = cost_value(&costs[COST_TOUCHED]) + more;
	else
		costs[COST_TOUCHED].hi += more;
	costs[COST_ACCESS].hi = costs[COST_TOUCHED].hi;
	costs[COST_COLD].hi = cost_value(&costs[COST_COLD]) + (s64)o->unseen;
	if (o->resource)
		costs[COST_COLD].hi = cost_value(&costs[COST_RESIDENT]);
}

void access_totals(struct replay *p, struct report *r)
{
	struct cost *touched = &r->total[COST_TOUCHED], cost[COST_MAX];
	s64 more = 0, unseen_bytes = 0, sure = 0;
	int stirred = 0;
	u32 i;

	if (!r->access.clears)
		return;
	for (i = 1; i < p->nr_origins; i++) {
		struct origin *o = &p->origins[i];

		if (o->unused)
			continue;
		walk_costs(p, o, cost);
		more += doubtful(p, o, cost);
		unseen_bytes += (s64)o->unseen;
		stirred |= o->stirred;
		touched->counted += cost[COST_TOUCHED].counted;
		sure += cost[COST_COLD].counted;
	}
	if (!stirred)
		touched->hi = cost_value(touched) + more;
	r->total[COST_ACCESS].hi = touched->hi;
	r->total[COST_COLD].counted = sure;
	r->total[COST_COLD].hi = cost_value(&r->total[COST_COLD]) + unseen_bytes;
}

void access_free(struct access_space *a)
{
	while (a && a->n)
		free(a->blocks[--a->n]);
	if (a)
		free(a->blocks);
	free(a);
}
