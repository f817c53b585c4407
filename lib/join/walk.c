/* SPDX-License-Identifier: GPL-2.0-only
 * Pictures against the ledger. VMAs that no event announced get an owner by what they are, never a
 * guess at who asked for them; the runs of the last picture give every stock column. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/access.h"
#include "lib/join/memcg.h"
#include "lib/join/memsample.h"
#include "lib/join/shape.h"

#define PSS_SHIFT 12

/* ---- what an unannounced VMA is ---- */

/* MAP_HUGETLB | MAP_ANONYMOUS is a file of the kernel's own making, a private mapping of /dev/zero
 * is anonymous memory under an old name: both belong to whoever asked. */
static int is_file(const struct mp_ev_vma *v, const char *name)
{
	return name && name[0] == '/' &&
	       !(v->flags & MP_VMA_HUGETLB && !strncmp(name, "/anon_hugepage", 14)) &&
	       !(!(v->flags & MP_VMA_SHARED) && !strcmp(name, "/dev/zero"));
}

static u32 unannounced(struct replay *p, u32 space, const struct mp_ev_vma *v)
{
	const char *name = replay_text(p, v->name);
	struct space_state *s = space_get(p, space);
	int before = s && s->attached && !s->pictures;
	enum origin_kind rest = before ? ORIGIN_PREEXISTING : ORIGIN_UNATTRIBUTED;
	const char *shape;

	if (v->flags & MP_VMA_SHMEM)
		return origin_of_object(p, ORIGIN_SHMEM, space, v);
	if (is_file(v, name))
		return origin_of_object(p, ORIGIN_FILE, space, v);
	if (name && !strcmp(name, "[stack]"))
		return origin_get(p, ORIGIN_STACK, space, 0, 0, "[stack]");
	shape = shape_of(p, space, v);
	/* The program's own, which exec maps without a call. */
	if (shape && !before && shape_is_bss(shape))
		rest = ORIGIN_SPECIAL;
	if (shape)
		return origin_get(p, rest, space, 0, 0, shape);
	if (name && name[0] == '[' && strncmp(name, "[anon", 5) && strcmp(name, "[heap]"))
		return origin_get(p, ORIGIN_SPECIAL, space, 0, v->name, NULL);
	return origin_get(p, rest, space, 0, v->name, name ? NULL : "anonymous memory");
}

/* Files and shared memory belong to the object, whoever called mmap. */
static int is_object(const struct mp_ev_vma *v, const char *name)
{
	return v->flags & MP_VMA_SHMEM || is_file(v, name);
}

static int claim(struct replay *p, u32 space, u64 start, u64 end, const struct mp_ev_vma *v)
{
	int object = is_object(v, replay_text(p, v->name)), leaves = 0, err;
	u32 origin = object ? 0 : born_meanwhile(p, space, start, end);

	if (!origin && !object)
		origin = inherited_from(p, space, start, end);
	if (!origin && !object)
		leaves = (origin = still_leaving(p, space, start, end)) != 0;
	if (!origin)
		origin = unannounced(p, space, v);
	if (!origin)
		return p->err;
	err = ledger_claim(p->ledger, space, start, end, origin);
	if (!err && !leaves)
		p->origins[origin].generations++;
	/* Its call may have returned and be on its way: nobody is named yet, not for good. */
	if (!err && (leaves || (p->open && p->origins[origin].kind == ORIGIN_UNATTRIBUTED)))
		err = add_race(p, space, start, end);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

/* The picture shows another object than the ledger has: mapped as a file, or remapped unseen
 * (shmat). */
static int is_stale(const struct origin *o, const struct mp_ev_vma *v, const char *name)
{
	int object = o->kind == ORIGIN_FILE || o->kind == ORIGIN_SHMEM;

	return is_object(v, name)
		       ? !object || o->name != v->name || o->ino != v->ino || o->dev != v->dev
		       : object;
}

#define HUGETLB_MIN (2ull << 20)

/* The kernel rounds the length of a hugetlb mapping up to its page size, which mremap and munmap do
 * not say: what is less than a page is the mapping's own beside it. 0: there is none. */
static u32 rest_of_page(struct replay *p, u32 space, const struct mp_ev_vma *v, u64 at, u64 stop)
{
	struct ledger_interval iv;

	if (!(v->flags & MP_VMA_HUGETLB) || stop - at >= HUGETLB_MIN || at <= v->start ||
	    !ledger_find(p->ledger, space, at - 1, &iv))
		return 0;
	return iv.origin;
}

int walk_vma(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_vma *v = trace_body(rec, vma);
	const char *name = replay_text(p, v->name);
	struct ledger_interval iv;
	u64 at = v->start;
	u32 beside;
	int err = 0;

	if (p->nr_vmas == p->cap_vmas) {
		size_t cap = p->cap_vmas ? p->cap_vmas * 2 : 256;
		struct vma_seen *vmas = realloc(p->vmas, cap * sizeof(*vmas));

		if (!vmas)
			return -ENOMEM;
		p->vmas = vmas;
		p->cap_vmas = cap;
	}
	p->vmas[p->nr_vmas].ev = *v;
	p->vmas[p->nr_vmas].space = rec->space;
	p->vmas[p->nr_vmas++].walk = v->walk;
	if (v->flags & MP_VMA_GATE || v->end <= v->start)
		return 0;
	while (!err && at < v->end) {
		int found = ledger_next(p->ledger, rec->space, at, &iv);
		u64 stop = found && iv.start < v->end ? iv.start : v->end;

		/* A mapping that grows down does so without a call: what lies under it is its own.
		 */
		if (stop > at && v->flags & MP_VMA_STACK && found && iv.start == stop &&
		    stop < v->end && p->origins[iv.origin].kind == ORIGIN_MMAP) {
			err = ledger_map(p->ledger, rec->space, at, stop, iv.origin);
			at = stop;
			continue;
		}
		if (stop > at) {
			stop = leaving_until(p, rec->space, at, stop);
			beside = rest_of_page(p, rec->space, v, at, stop);
			err = beside ? ledger_map(p->ledger, rec->space, at, stop, beside)
				     : claim(p, rec->space, at, stop, v);
			at = stop;
			continue;
		}
		stop = iv.end < v->end ? iv.end : v->end;
		if (is_stale(&p->origins[iv.origin], v, name))
			err = claim(p, rec->space, at, stop, v);
		at = stop;
	}
	return err ? err : resource_of_vma(p, rec->space, v);
}

/* ---- pages ---- */

/* Before the time that was recorded: its growth counts from its first picture. Of a flight
 * recorder's spaces that is so of those that it has seen being born, too. */
static int was_there(const struct replay *p, const struct space_state *s)
{
	return s->attached || s->born_ns < p->window_begin;
}

#define HUGE_BYTES (2ull << 20)

int walk_run(struct replay *p, const struct mp_hdr *rec, int final)
{
	const struct mp_ev_run *run = trace_body(rec, run);
	struct space_state *s = space_get(p, rec->space);
	u64 at = run->start, end = run->start + run->pages * MP_PAGE_SIZE, stop;
	struct ledger_interval iv;
	int first = s && !s->pictures && was_there(p, s);
	u32 mapping;

	/* A mapping that grew while the kernel listed it is listed again, from its start. */
	if (at < p->walked)
		at = p->walked;
	if (end > p->walked)
		p->walked = end;
	if (!s || end <= at)
		return 0;
	if (access_run(p, rec->space, run))
		return -ENOMEM;
	if (!final && !first && !access_watches(p, rec->space))
		return 0;
	if (run->flags & MP_PAGE_THP && first)
		for (stop = at; stop < end && !p->err; stop += HUGE_BYTES)
			p->err = huge_add(p, rec->space, stop);
	else if (run->flags & MP_PAGE_RESIDENT && !(run->flags & MP_PAGE_THP) && final)
		huge_split(p, rec->space, run);
	while (at < end && !p->err) {
		if (ledger_next(p->ledger, rec->space, at, &iv) && iv.start <= at) {
			stop = iv.end < end ? iv.end : end;
			mapping = origin_in(p, iv.origin, rec->space);
		} else {
			/* The VMA was there, its mapping is gone: nobody is named for it. */
			stop = at + MP_PAGE_SIZE;
			iv = (struct ledger_interval){.start = at, .end = stop};
			mapping = origin_get(p, ORIGIN_UNATTRIBUTED, rec->space, 0, 0,
					     "unmapped while walked");
		}
		if (mapping)
			charge_range(p, rec->space, &iv, mapping, run, at, stop, first, final);
		at = stop;
	}
	return p->err;
}

/* Mappings the ledger has and the picture has not: an event was lost or cannot be seen. What was
 * mapped while the picture was taken is none of these. */
static int repair_gap(struct replay *p, u32 space, u64 at, u64 end)
{
	struct ledger_interval iv;
	int err = 0;

	while (!err && at < end && ledger_next(p->ledger, space, at, &iv) && iv.start < end) {
		u64 from = iv.start > at ? iv.start : at, to = iv.end < end ? iv.end : end;

		if (!racing(p, space, from, to) && !born_late(p, from, to))
			err = ledger_unmap(p->ledger, space, from, to);
		at = to;
	}
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

static int repair(struct replay *p, u32 space)
{
	u64 at = 0;
	size_t i;
	int err = 0;

	for (i = 0; i < p->nr_vmas && !err; i++) {
		if (p->vmas[i].ev.flags & MP_VMA_GATE)
			continue;
		err = repair_gap(p, space, at, p->vmas[i].ev.start);
		at = p->vmas[i].ev.end;
	}
	return err ? err : repair_gap(p, space, at, 1ull << 56);
}

static void charge_objects(struct replay *p, u32 space)
{
	struct ledger_interval iv;
	size_t i;

	for (i = 0; i < p->nr_vmas; i++)
		if (p->vmas[i].ev.shmem_swap &&
		    ledger_find(p->ledger, space, p->vmas[i].ev.start, &iv))
			charge(p, origin_in(p, iv.origin, space), COST_SWAPPED,
			       (s64)p->vmas[i].ev.shmem_swap, 0);
}

int walk_finish(struct replay *p, const struct mp_hdr *rec, int final)
{
	struct ledger_interval iv;
	u32 space = rec->space;
	u64 at = 0;
	int err = repair(p, space);
	struct space_state *s = space_get(p, space);

	access_walk_end(p, space, trace_body(rec, walk)->id);
	if (err || !final)
		return err;
	if (s && !s->pictured) {
		s->pictured = 1;
		p->nr_pictured++;
	}
	if (s)
		after_picture(s, rec->seq);
	charge_objects(p, space);
	for (; ledger_next(p->ledger, space, at, &iv); at = iv.end)
		charge_reserved(p, space, &iv);
	return p->err;
}

const char *cost_absent(const struct report *r, enum cost_id id)
{
	if (id == COST_PSS || id == COST_UNIQUE || id == COST_PRIVATE || id == COST_SHARED)
		return r->no_frames ? "page frame numbers were hidden: CAP_SYS_ADMIN missing"
				    : NULL;
	/* A page nobody could place makes every node's sum a guess. */
	if (id >= COST_NODE0 && id < COST_NODE0 + MP_NODE_COLUMNS)
		return r->no_nodes ? "the node of a page is unknown" : NULL;
	if (id == COST_LIVE)
		return r->no_map;
	if (id == COST_FREED || id == COST_SLACK || id == COST_PADDING)
		return r->no_alloc ? r->no_alloc
		       : r->sampled
			       ? "allocations were sampled: what was freed, or never allocated, "
				 "is in live"
			       : NULL;
	if (id == COST_CHARGED)
		return r->memcg ? NULL : "no cgroup was recorded: record with --cgroup";
	if (id == COST_IDLE)
		return r->some_resources ? NULL : "no application said when it uses what";
	if (id == COST_GROWN)
		return r->no_growth;
	if (id == COST_COLD || id == COST_ACCESS)
		return r->access.clears ? NULL
					: "accessed bits were not watched: --access ptwalk does";
	if (id == COST_SAMPLES || id == COST_LATENCY || id == COST_REMOTE)
		return r->samples.on ? NULL : "no samples were imported: record --samples does";
	if (id == COST_TOUCHED && r->access.clears)
		return NULL;
	if (r->no_life[id])
		return r->no_life[id];
	return cost_columns[id].kind == COST_FLOW ? r->no_fault : NULL;
}

/* ---- the law ---- */

/* mm/: a percpu counter's cpu keeps up to max(32, 2 * cpus) pages to itself; Rss is three of them.
 */
static u64 counter_lag(u32 nr_cpus)
{
	u64 batch = nr_cpus > 16 ? 2 * (u64)nr_cpus : 32;

	return 3 * batch * nr_cpus * MP_PAGE_SIZE;
}

void walk_check(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_check *ev = trace_body(rec, check);
	struct {
		enum cost_id id;
		u64 value;
	} rows[] = {{COST_RESIDENT, ev->rss},	 {COST_PSS, ev->pss},
		    {COST_SWAPPED, ev->swap},	 {COST_THP, ev->thp},
		    {COST_HUGETLB, ev->hugetlb}, {COST_RESERVED, ev->vmsize}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct check *c = &p->r->check[rows[i].id];

		if (ev->source == MP_CHECK_STATUS && rows[i].id != COST_RESIDENT &&
		    rows[i].id != COST_RESERVED) {
			c->judged = 0;
			c->status = CHECK_UNJUDGED;
			c->reason = "not compared: smaps_rollup costs another walk";
			continue;
		}
		c->judged = 1;
		if (ev->source == MP_CHECK_STATUS && rows[i].id == COST_RESIDENT && ev->when)
			c->lag += counter_lag(p->nr_cpus);
		if (ev->when)
			c->kernel += rows[i].value;
		else
			c->kernel_before += rows[i].value;
	}
}

/* Equal readings prove nothing for a process that ran on: it may have come back to the same size.
 */
static void judge(struct check *c, s64 sum, int stable)
{
	u64 lo = c->kernel < c->kernel_before ? c->kernel : c->kernel_before;
	u64 hi = c->kernel > c->kernel_before ? c->kernel : c->kernel_before;
	u64 off;

	c->residual = (s64)c->kernel - sum;
	off = (u64)(c->residual < 0 ? -c->residual : c->residual);
	if (off < c->tolerance)
		c->residual = 0;
	if (!c->residual || ((u64)sum >= lo && (u64)sum <= hi)) {
		c->status = CHECK_OK;
		c->residual = 0;
		c->reason = lo == hi ? "two equal readings around the walk"
				     : "between the readings before and after the walk";
		return;
	}
	if (off <= c->lag) {
		c->status = CHECK_OK;
		c->reason = "within what the kernel's counters may be behind";
		return;
	}
	c->status = stable ? CHECK_RESIDUAL : CHECK_DRIFT;
	c->reason = stable ? "the target was stopped: rows are missing or counted twice"
			   : "the process ran on while it was walked";
}

static void whole_bytes(struct cost *pss)
{
	pss->exact >>= PSS_SHIFT;
	pss->inferred >>= PSS_SHIFT;
	pss->counted >>= PSS_SHIFT;
	pss->sampled >>= PSS_SHIFT;
	pss->sure >>= PSS_SHIFT;
	pss->variance /= (double)(1ull << 2 * PSS_SHIFT);
}

/* Had it faulted, it would have been seen, and be in this row. */
static int sees_faults(struct replay *p, const struct origin *o)
{
	struct space_state *s = space_get(p, o->space);

	return (o->kind == ORIGIN_FAULT || faults_are_of_mapping(p, o->kind)) &&
	       !(s && s->lost[MP_CLASS_PAGE]);
}

/* Between its first picture and its last; one alone shows no change. */
static int grows(const struct replay *p, const struct space_state *s)
{
	return !was_there(p, s) || s->pictures > 1 || !s->pictured;
}

static int shows_growth(struct replay *p, const struct origin *o)
{
	const struct space_state *s = space_get(p, o->space);

	return !s || grows(p, s);
}

/* Of all targets, of some or of none. */
static void judge_growth(const struct replay *p, struct report *r)
{
	u32 i, some = 0, none = 0;

	for (i = 0; i < p->nr_spaces; i++)
		if (p->spaces[i].pictured)
			++*(grows(p, &p->spaces[i]) ? &some : &none);
	r->total[COST_GROWN].open |= none > 0;
	r->no_growth = none && !some ? "one picture only: growth lies between two" : NULL;
}

/* What a cgroup is charged beyond its processes' pages is in no page table. */
static int has_evidence(struct replay *p, const struct origin *o, int c)
{
	if (o->kind == ORIGIN_MEMCG)
		return 0;
	if (c == COST_CHARGED)
		return knows_charges(p);
	if (c == COST_IDLE) /* see resource.c */
		return 0;
	if (c == COST_GROWN)
		return shows_growth(p, o);
	if (c == COST_LATENCY || c == COST_REMOTE)
		return 0;
	if (c == COST_SAMPLES)
		return p->r->samples.placed > 0;
	if (sample_is_site(o) && (cost_columns[c].kind == COST_FLOW || c == COST_COLD))
		return 0;
	if (c == COST_COLD || c == COST_ACCESS || (c == COST_TOUCHED && !sees_faults(p, o)))
		return access_known(p, o->space);
	if (life_is_edge(c))
		return life_has_evidence(o, c);
	return cost_columns[c].kind == COST_STOCK || sees_faults(p, o);
}

/* A page that a fault stack has now may have been the mapping's at the start: it then only moved,
 * and the mapping did not shrink. hi says so: see names.c. */
static void grown(struct replay *p, const struct origin *o, struct cost *ret)
{
	enum cost_part part = page_part(p, o);

	part_add(ret, part, -(s64)o->resident_start);
	ret->open |= part != PART_EXACT;
	/* What it had nothing of at the start cannot have moved. */
	if (!o->moved || !o->resident_start)
		return;
	ret->counted += ret->exact;
	ret->inferred += ret->exact;
	ret->exact = 0;
	ret->open = 1;
}

/* A flow of 0 is what was seen, never exact. */
static void evident(struct cost *c, int column)
{
	c->known = 1;
	c->open |= cost_columns[column].kind == COST_FLOW && column != COST_GROWN;
}

/* sampled: as estimated, else as the pages are charged. */
static void costs_of(struct replay *p, const struct origin *o, int sampled, struct cost *ret)
{
	int c;

	memcpy(ret, o->cost, sizeof(o->cost));
	if (!p->r->has_walk)
		return;
	for (c = 0; c < COST_MAX; c++)
		if (cost_absent(p->r, (enum cost_id)c))
			memset(&ret[c], 0, sizeof(ret[c]));
		else if (ret[c].known || has_evidence(p, o, c))
			evident(&ret[c], c);
	if (sampled)
		sample_costs(p, o, ret);
	if (o->kind != ORIGIN_MEMCG)
		whole_bytes(&ret[COST_PSS]);
	if (ret[COST_GROWN].known) {
		ret[COST_GROWN] = ret[COST_RESIDENT];
		grown(p, o, &ret[COST_GROWN]);
	}
	access_costs(p, o, ret);
	after_costs(p, o, ret);
}

void walk_costs(struct replay *p, const struct origin *o, struct cost *ret)
{
	costs_of(p, o, 1, ret);
}

/* A byte of doubtful class may be of any. */
static void class_bounds(struct report *r)
{
	s64 doubt = 0;
	int c;

	for (c = 0; c < CLASS_MAX; c++)
		doubt += r->classes[c].inferred - r->classes[c].counted;
	for (c = 0; c < CLASS_MAX; c++) {
		struct cost *k = &r->classes[c];
		s64 others = doubt - (k->inferred - k->counted);

		k->known = r->has_walk && ((!r->no_alloc && !r->sampled) ||
					   (c != CLASS_FREED && c != CLASS_SLACK));
		k->hi = cost_value(k) + others;
		k->open = others > 0;
	}
}

static int is_class(int c)
{
	return c == COST_LIVE || c == COST_FREED || c == COST_SLACK || c == COST_PADDING;
}

/* However its owners are known, a walk counts all pages; charges are counted elsewhere, too. */
static void total_bounds(const struct replay *p, struct report *r)
{
	s64 ever = cost_value(&r->total[COST_RESERVED]);
	u32 i;
	int c;

	for (c = 0; c < COST_MAX; c++) {
		struct cost *t = &r->total[c];

		if (c == COST_IDLE)
			continue;
		if ((cost_columns[c].kind == COST_STOCK && c != COST_CHARGED && c != COST_COLD &&
		     !is_class(c)) ||
		    c == COST_GROWN)
			t->counted = t->inferred - p->raced[c == COST_GROWN ? COST_RESIDENT : c];
		t->hi = cost_value(t);
		/* Bytes whose owner is not sure may be of another class. */
		if (is_class(c) && t->inferred)
			t->hi = cost_value(&r->total[COST_RESIDENT]);
	}
	for (i = 1; i < p->nr_origins; i++)
		ever += p->origins[i].unused ? 0 : (s64)p->origins[i].mapped;
	if (ever > r->total[COST_TOUCHED].hi)
		r->total[COST_TOUCHED].hi = ever;
}

/* What the rows add up to. */
static void add_rows(struct replay *p, struct report *r, const struct origin *o)
{
	struct cost cost[COST_MAX];
	u32 c;

	costs_of(p, o, 1, cost);
	for (c = 0; c < COST_MAX; c++) {
		u64 value = (u64)cost_value(&cost[c]);

		/* The sum is rounded once. */
		if (c == COST_PSS)
			value = (u64)cost_value(&o->cost[c]);
		if (!cost[c].known)
			continue;
		if (o->kind == ORIGIN_UNATTRIBUTED)
			r->check[c].unattributed += value;
		else
			r->check[c].attributed += value;
	}
}

void walk_judge(struct replay *p, struct report *r)
{
	struct cost cost[COST_MAX];
	u32 i, c;

	judge_growth(p, r);
	for (i = 1; i < p->nr_origins; i++) {
		if (p->origins[i].unused)
			continue;
		costs_of(p, &p->origins[i], 0, cost);
		/* The total is rounded once. */
		cost[COST_PSS].exact = p->origins[i].cost[COST_PSS].exact;
		cost[COST_PSS].inferred = p->origins[i].cost[COST_PSS].inferred;
		for (c = 0; c < COST_MAX; c++) {
			if (!cost[c].known)
				continue;
			cost_add(&r->total[c], cost[c].exact, cost[c].inferred);
			r->total[c].open |= cost[c].open;
		}
		add_rows(p, r, &p->origins[i]);
	}
	total_bounds(p, r);
	access_totals(p, r);
	memsample_totals(p, r);
	class_bounds(r);
	after_totals(p, r);
	whole_bytes(&r->total[COST_PSS]);
	r->check[COST_PSS].attributed >>= PSS_SHIFT;
	r->check[COST_PSS].unattributed >>= PSS_SHIFT;
	r->check[COST_PSS].tolerance = 1024 * p->nr_pictured;
	for (c = 0; c < COST_MAX; c++) {
		const char *absent = cost_absent(r, (enum cost_id)c);

		if (r->check[c].judged && absent) {
			r->check[c].judged = 0;
			r->check[c].status = CHECK_UNJUDGED;
			r->check[c].reason = absent;
		}
		if (r->check[c].judged)
			judge(&r->check[c],
			      (s64)(r->check[c].attributed + r->check[c].unattributed), r->stable);
	}
	memcg_judge(r);
}
