/* SPDX-License-Identifier: GPL-2.0-only
 * Estimates from n samples have 95% intervals: of a row's number of samples, and of those with a
 * property, Wilson's interval of its share of all; of a sum of weights that of a compound Poisson
 * sum, whose variance is the sum of the squares. Both take samples for independent: a row that has
 * a share in one half of them which it has not in the other shows that they are not. */
#include <math.h>
#include "lib/join/memsample.h"

#define Z 1.959964 /* 95% */

/* union perf_mem_data_src of linux/perf_event.h */
#define LVL_SHIFT	5
#define LVL_REMOTE_RAM1 0x100u
#define LVL_REMOTE_RAM2 0x200u
#define LVL_REMOTE_CCE1 0x400u
#define LVL_REMOTE_CCE2 0x800u
#define LVL_REMOTE	(LVL_REMOTE_RAM1 | LVL_REMOTE_RAM2 | LVL_REMOTE_CCE1 | LVL_REMOTE_CCE2)
#define LVL_BITS	0x3fffu
#define REMOTE_BIT	(1ull << 37)

#define HAS_WEIGHT	2u
#define HAS_DATA_SRC	4u

/* The latest space of a process. */
static struct space_state *space_of(struct replay *p, u32 pid)
{
	u32 i;

	for (i = p->nr_spaces; i-- > 0;)
		if (p->spaces[i].pid == pid && !p->spaces[i].gone)
			return &p->spaces[i];
	return NULL;
}

void memsample_note(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_memsamples *all = trace_body(rec, memsamples);

	if (rec->type == MP_EV_MEMSAMPLE) {
		p->nr_samples++;
		return;
	}
	p->r->samples.on = 1;
	p->r->samples.file = replay_text(p, all->file);
	p->r->samples.total += all->total;
	p->r->samples.lost += all->lost;
	p->r->samples.throttled += all->throttled;
	p->r->samples.clock = all->clock == 1;
}

static int is_remote(const struct mp_ev_memsample *s)
{
	return s->has & HAS_DATA_SRC &&
	       (s->data_src & REMOTE_BIT || s->data_src >> LVL_SHIFT & LVL_BITS & LVL_REMOTE);
}

int memsample_apply(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_memsample *ev = trace_body(rec, memsample);
	struct space_state *s = space_of(p, ev->pid);
	u32 owner, second = p->sample_at++ * 2 >= p->nr_samples;
	struct origin *o;

	if (!s)
		return 0;
	owner = byte_owner(p, s->id, ev->addr);
	if (!owner)
		owner = origin_get(p, ORIGIN_UNATTRIBUTED, s->id, 0, 0, "not mapped at the end");
	if (!owner)
		return p->err;
	o = &p->origins[owner];
	p->r->samples.placed++;
	o->halves[second]++;
	o->cost[COST_SAMPLES].sampled++;
	o->cost[COST_SAMPLES].known = 1;
	if (ev->has & HAS_WEIGHT) {
		o->cost[COST_LATENCY].sampled += (s64)(ev->weight & 0xffffffffu);
		o->cost[COST_LATENCY].known = 1;
		o->weight_squares += (double)(u32)ev->weight * (double)(u32)ev->weight;
	}
	if (ev->has & HAS_DATA_SRC) {
		o->cost[COST_REMOTE].sampled += is_remote(ev);
		o->cost[COST_REMOTE].known = 1;
	}
	return 0;
}

/* ---- intervals ---- */

static void share(struct cost *c, double all)
{
	double k = (double)c->sampled, part = k / all, z2 = Z * Z;
	double mid = (part + z2 / (2 * all)) / (1 + z2 / all);
	double half = Z * sqrt(part * (1 - part) / all + z2 / (4 * all * all)) / (1 + z2 / all);
	double lo = floor((mid - half) * all), hi = ceil((mid + half) * all);

	c->counted = lo < 0 ? 0 : (s64)lo;
	c->hi = (s64)hi;
}

static void sum(struct cost *c, double squares)
{
	double half = Z * sqrt(squares);

	c->counted = (double)c->sampled > half ? (s64)((double)c->sampled - half) : 0;
	c->hi = (s64)((double)c->sampled + half + 1);
}

void memsample_bound(struct replay *p, const struct origin *o, struct cost *costs)
{
	double all = (double)p->r->samples.placed;

	if (!all || !costs[COST_SAMPLES].known)
		return;
	share(&costs[COST_SAMPLES], all);
	if (costs[COST_REMOTE].known)
		share(&costs[COST_REMOTE], all);
	if (costs[COST_LATENCY].known)
		sum(&costs[COST_LATENCY], o->weight_squares);
}

/* Were both halves of one distribution, this sum over rows would be about the number of rows; it is
 * far above in one case of a thousand. */
static int halves_disagree(const struct replay *p)
{
	double chi = 0, rows = 0;
	u32 i;

	for (i = 1; i < p->nr_origins; i++) {
		double a = (double)p->origins[i].halves[0], b = (double)p->origins[i].halves[1];

		if (p->origins[i].unused || a + b < 10)
			continue;
		chi += (a - b) * (a - b) / (a + b);
		rows++;
	}
	return rows > 1 && chi > rows + 3.1 * sqrt(2 * rows) + 3;
}

void memsample_totals(struct replay *p, struct report *r)
{
	static const enum cost_id columns[] = {COST_SAMPLES, COST_LATENCY, COST_REMOTE};
	double squares = 0;
	size_t c;
	u32 i;

	if (!r->samples.on)
		return;
	for (i = 1; i < p->nr_origins; i++) {
		const struct origin *o = &p->origins[i];

		for (c = 0; !o->unused && c < sizeof(columns) / sizeof(columns[0]); c++) {
			r->total[columns[c]].sampled += o->cost[columns[c]].sampled;
			r->total[columns[c]].known |= o->cost[columns[c]].known;
		}
		squares += o->unused ? 0 : o->weight_squares;
	}
	/* All of them is no estimate. */
	r->total[COST_SAMPLES].counted = r->total[COST_SAMPLES].sampled;
	r->total[COST_SAMPLES].hi = r->total[COST_SAMPLES].sampled;
	if (r->samples.placed)
		share(&r->total[COST_REMOTE], (double)r->samples.placed);
	sum(&r->total[COST_LATENCY], squares);
	r->samples.unranked = halves_disagree(p);
}
