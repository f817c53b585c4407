/* SPDX-License-Identifier: GPL-2.0-only
 * Allocations of which only a sample was announced. Each byte of a picture is charged to its
 * mapping as if nothing were known of allocations; beside that the sampled ones say how much of it
 * all allocations of a stack are likely to have. That is taken off the mappings of allocators, so
 * that the rows add up to what they did: never more than these have. Flows are not estimated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/estimate.h"
#include "lib/join/replay.h"

#define PSS_SHIFT 12

/* Of an origin of sampled allocations, or of a mapping that holds allocations. */
struct estimate {
	u32 picture; /* the one that sum, variance and own are of */
	u32 n; /* allocations met in it */
	double sum[COST_MAX], variance[COST_MAX];
	s64 own[COST_MAX]; /* bytes of the sampled ones themselves */
	/* Of the report at hand. */
	s64 value[COST_MAX]; /* what it is charged; of a mapping what is taken off it */
	s64 lo[COST_MAX], hi[COST_MAX];
	double error[COST_MAX]; /* variance of value */
	u8 heap; /* it is a mapping */
	u8 settled;
};

/* What is not watched page by page. */
static int is_stock(int c)
{
	return cost_columns[c].kind == COST_STOCK && c != COST_COLD && c != COST_IDLE;
}

static struct estimate *estimate_of(struct replay *p, u32 origin)
{
	struct origin *o = &p->origins[origin];

	if (!o->estimate)
		o->estimate = calloc(1, sizeof(*o->estimate));
	if (!o->estimate)
		p->err = -ENOMEM;
	return o->estimate;
}

/* ---- a picture ---- */

/* The allocation that was met is complete: runs of pages come in order. */
static void flush(struct replay *p)
{
	struct sampled_object *s = &p->object;
	struct estimate *e = s->origin ? estimate_of(p, s->origin) : NULL;
	double w = (double)s->weight, y;
	int c;

	s->origin = 0;
	if (!e)
		return;
	if (e->picture != p->picture) {
		memset(e, 0, sizeof(*e));
		e->picture = p->picture;
	}
	/* Its pages and its address space are charged one after the other. */
	e->n += s->bytes[COST_RESERVED] != 0;
	for (c = 0; c < COST_MAX; c++) {
		y = (double)s->bytes[c];
		e->sum[c] += w * y;
		e->variance[c] += w * (w - 1) * y * y;
		e->own[c] += s->bytes[c];
	}
}

void sample_charge(struct replay *p, const struct sampled_piece *piece, enum cost_id id, s64 amount)
{
	struct sampled_object *s = &p->object;

	if (s->origin != piece->origin || s->birth != piece->birth) {
		flush(p);
		memset(s, 0, sizeof(*s));
		s->origin = piece->origin;
		s->birth = piece->birth;
		s->weight = piece->weight;
	}
	s->bytes[id] += amount;
}

void sample_forget(struct replay *p)
{
	p->object.origin = 0;
	p->picture++;
}

/* ---- a report ---- */

static int is_site(const struct replay *p, const struct origin *o)
{
	return !o->unused && o->estimate && !o->estimate->heap && o->estimate->n &&
	       o->estimate->picture == p->picture;
}

/* Does an allocator ask for such mappings? */
static int is_heap(struct replay *p, u32 i)
{
	const struct origin *o = &p->origins[i];

	return !o->unused && (o->kind == ORIGIN_BRK || may_hold_allocs(o->kind)) &&
	       (o->samples == p->picture || o->heap || names_is_allocators(p, o));
}

/* What all allocations of a space and a name have of a column, and the mappings they lie in. */
struct pool {
	double sum, variance, factor;
	s64 has, given, hi;
	u32 space, resource;
};

static int is_in(const struct pool *pool, const struct origin *o)
{
	return !o->unused && o->space == pool->space && o->resource == pool->resource;
}

static void settle_sites(struct replay *p, int c, struct pool *pool)
{
	double f = pool->factor, v, var;
	struct estimate *e;
	u32 i;

	for (i = 1; i < p->nr_origins; i++) {
		e = p->origins[i].estimate;
		if (!is_in(pool, &p->origins[i]) || !is_site(p, &p->origins[i]))
			continue;
		v = e->sum[c] * f;
		var = e->variance[c] * f * f;
		e->value[c] = (s64)(v + 0.5);
		if (e->value[c] > pool->has - pool->given)
			e->value[c] = pool->has - pool->given;
		e->error[c] = var;
		e->lo[c] = (s64)estimate_lo(v, var);
		if (e->lo[c] < e->own[c])
			e->lo[c] = e->own[c];
		if (e->lo[c] > e->value[c])
			e->lo[c] = e->value[c];
		e->hi[c] = (s64)(estimate_hi(v, var) + 1);
		if (e->hi[c] > pool->has)
			e->hi[c] = pool->has;
		if (e->hi[c] < e->value[c])
			e->hi[c] = e->value[c];
		pool->given += e->value[c];
	}
}

/* Each mapping gives its part of what they all give: the parts are rounded so that they add up. */
static void settle_heaps(struct replay *p, int c, const struct pool *pool)
{
	s64 has = 0, gave = 0, now, to;
	struct estimate *e;
	u32 i;

	for (i = 1; i < p->nr_origins && pool->has; i++) {
		e = p->origins[i].estimate;
		if (!is_in(pool, &p->origins[i]) || !e || !e->heap)
			continue;
		now = cost_value(&p->origins[i].cost[c]);
		has += now;
		to = (s64)((__int128)pool->given * has / pool->has);
		e->value[c] = to - gave;
		e->lo[c] = now > pool->hi ? now - pool->hi : 0;
		e->hi[c] = now;
		gave = to;
	}
}

static int find_heaps(struct replay *p, const struct pool *pool)
{
	struct estimate *e;
	u32 i;

	for (i = 1; i < p->nr_origins; i++) {
		if (!is_in(pool, &p->origins[i]) || p->origins[i].kind == ORIGIN_MALLOC ||
		    !is_heap(p, i))
			continue;
		e = estimate_of(p, i);
		if (!e)
			return -ENOMEM;
		e->heap = 1;
	}
	return 0;
}

static void add_up(struct replay *p, int c, struct pool *pool)
{
	const struct estimate *e;
	u32 i;

	pool->sum = pool->variance = 0;
	pool->has = pool->given = 0;
	for (i = 1; i < p->nr_origins; i++) {
		e = p->origins[i].estimate;
		if (!e || !is_in(pool, &p->origins[i]))
			continue;
		if (e->heap)
			pool->has += cost_value(&p->origins[i].cost[c]);
		if (!is_site(p, &p->origins[i]))
			continue;
		pool->sum += e->sum[c];
		pool->variance += e->variance[c];
	}
	pool->factor = pool->sum > (double)pool->has ? (double)pool->has / pool->sum : 1;
	pool->hi = (s64)(estimate_hi(pool->sum, pool->variance) + 1);
}

static int settle_pool(struct replay *p, u32 space, u32 resource)
{
	struct pool pool = {.space = space, .resource = resource};
	int c, err = find_heaps(p, &pool);

	for (c = 0; c < COST_MAX && !err; c++) {
		if (!is_stock(c))
			continue;
		add_up(p, c, &pool);
		settle_sites(p, c, &pool);
		settle_heaps(p, c, &pool);
	}
	return err;
}

int sample_settle(struct replay *p)
{
	struct origin *o;
	u32 i, k;
	int err = 0;

	flush(p);
	for (i = 1; i < p->nr_origins; i++) {
		o = &p->origins[i];
		if (o->estimate && o->estimate->heap)
			sample_release(o);
		if (o->estimate)
			o->estimate->settled = 0;
	}
	for (i = 1; i < p->nr_origins && !err; i++) {
		o = &p->origins[i];
		if (!is_site(p, o) || o->estimate->settled)
			continue;
		err = settle_pool(p, o->space, o->resource);
		for (k = i; k < p->nr_origins; k++)
			if (p->origins[k].estimate && p->origins[k].space == o->space &&
			    p->origins[k].resource == o->resource)
				p->origins[k].estimate->settled = 1;
	}
	return err ? err : p->err;
}

int sample_is_site(const struct origin *o)
{
	return o->estimate && !o->estimate->heap;
}

/* A loss of allocations may have concerned any of them. */
static int is_lost(struct replay *p, const struct origin *o)
{
	const struct space_state *s = space_get(p, o->space);

	return s && s->lost[MP_CLASS_ALLOC];
}

void sample_costs(struct replay *p, const struct origin *o, struct cost *costs)
{
	const struct estimate *e = o->estimate;
	int c;

	if (!e || (!e->heap && e->picture != p->picture))
		return;
	for (c = 0; c < COST_MAX; c++) {
		struct cost *k = &costs[c];
		s64 was = cost_value(k);

		if (!k->known || !is_stock(c))
			continue;
		if (e->heap) {
			*k = (struct cost){.sampled = was - e->value[c], .known = 1};
		} else {
			k->sampled += e->value[c];
			k->variance += e->error[c];
			k->n = e->n;
		}
		k->sure += is_lost(p, o) ? 0 : e->lo[c];
		k->open = 1;
	}
}

void sample_bound(struct replay *p, const struct origin *o, struct cost *costs)
{
	const struct estimate *e = o->estimate;
	const struct space_state *s = space_get(p, o->space);
	int c, of, shift;

	if (!e || (!e->heap && e->picture != p->picture))
		return;
	for (c = 0; c < COST_MAX; c++) {
		of = c == COST_GROWN ? COST_RESIDENT : c;
		if (!costs[c].known || !is_stock(of))
			continue;
		/* Shares of pages are finer than bytes, until a row is made. */
		shift = c == COST_PSS ? PSS_SHIFT : 0;
		if (e->heap)
			costs[c].hi += (e->value[of] >> shift) + 1;
		else
			costs[c].hi += ((e->hi[of] - e->value[of]) >> shift) + 1;
		if (s && s->lost[MP_CLASS_ALLOC])
			costs[c].hi += e->hi[of] >> shift;
	}
}

void sample_release(struct origin *o)
{
	free(o->estimate);
	o->estimate = NULL;
}
