/* SPDX-License-Identifier: GPL-2.0-only
 * Names that applications give to their memory, by probes or to a mapping, and that rules give to
 * what has none; when each was used last. A name parts the rows of an owner, it makes no new owner:
 * by stack they are one again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/replay.h"

/* ---- what was said of each ---- */

static struct resource_state *slot_of(struct resource_state *all, u32 cap, u32 space, u32 name)
{
	u32 i = (space * 0x85ebca6bu ^ name) * 0x9e3779b1u >> 7;

	while (all[i & (cap - 1)].name &&
	       (all[i & (cap - 1)].name != name || all[i & (cap - 1)].space != space))
		i++;
	return &all[i & (cap - 1)];
}

static int grow(struct replay *p)
{
	u32 cap = p->cap_resources ? p->cap_resources * 2 : 64, i;
	struct resource_state *all = calloc(cap, sizeof(*all)), *s;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < p->cap_resources; i++) {
		s = &p->resources[i];
		if (s->name)
			*slot_of(all, cap, s->space, s->name) = *s;
	}
	free(p->resources);
	p->resources = all;
	p->cap_resources = cap;
	return 0;
}

/* NULL: memory is short. */
static struct resource_state *state_of(struct replay *p, u32 space, u32 name)
{
	struct resource_state *s;

	if (p->nr_resources * 2 >= p->cap_resources && grow(p))
		return NULL;
	s = slot_of(p->resources, p->cap_resources, space, name);
	if (!s->name)
		p->nr_resources++;
	s->space = space;
	s->name = name;
	return s;
}

/* ---- records ---- */

static int on_begin(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_resource *ev = trace_body(rec, resource);
	struct resource_state *s = ev->name ? state_of(p, rec->space, ev->name) : NULL;
	int err;

	if (!s)
		return ev->name ? -ENOMEM : 0;
	s->begun_ns = rec->time_ns;
	p->some_named = 1;
	err = ledger_name(p->ledger, rec->space, ev->start, ev->end, ev->name);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

static int on_use(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_resource_use *ev = trace_body(rec, resource_use);
	struct resource_state *s = ev->name ? state_of(p, rec->space, ev->name) : NULL;

	if (!s)
		return ev->name ? -ENOMEM : 0;
	s->used_ns = ev->last;
	s->read_ns = rec->time_ns;
	p->uses_ns = rec->time_ns;
	return 0;
}

int resource_apply(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_resource_end *ev = trace_body(rec, resource_end);
	int err;

	if (rec->type == MP_EV_RESOURCE)
		return on_begin(p, rec);
	if (rec->type == MP_EV_RESOURCE_USE)
		return on_use(p, rec);
	err = ledger_unname(p->ledger, rec->space, ev->start, ev->end, ev->name);
	return err == -ENOENT ? 0 : err;
}

int resource_rule(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_name_rule *ev = trace_body(rec, name_rule);
	struct name_rule rule = {(enum mp_named_by)ev->kind, replay_text(p, ev->name),
				 replay_text(p, ev->pattern)};
	struct name_rule *all;

	if (ev->kind >= MP_BY_MAX || !rule.name || !rule.pattern)
		return 0;
	all = reallocarray(p->rules, p->nr_rules + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	p->rules = all;
	all[p->nr_rules++] = rule;
	return 0;
}

/* ---- the names of ranges ---- */

/* "[anon:NAME]", as the kernel shows PR_SET_VMA_ANON_NAME. */
static int is_vma_name(const char *text)
{
	return text && !strncmp(text, "[anon:", 6);
}

/* The probes' names are more than the mapping's, and stay. */
int resource_of_vma(struct replay *p, u32 space, const struct mp_ev_vma *v)
{
	u32 name = is_vma_name(replay_text(p, v->name)) ? v->name : 0, was;
	u64 at, end;
	int err = 0;

	if (!name && !p->some_named)
		return 0;
	p->some_named = 1;
	for (at = v->start; at < v->end && !err; at = end) {
		end = v->end;
		was = ledger_named(p->ledger, space, at, &end);
		if (was == name || (was && !is_vma_name(replay_text(p, was))))
			continue;
		err = name ? ledger_name(p->ledger, space, at, end, name)
			   : ledger_unname(p->ledger, space, at, end, was);
	}
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

u32 resource_row(struct replay *p, u32 origin, u32 space, u64 addr, u64 *end)
{
	u32 name = p->some_named ? ledger_named(p->ledger, space, addr, end) : 0;
	u32 row = name ? origin_named(p, origin, name) : 0;

	return row ? row : origin;
}

/* ---- the report ---- */

static int by_name(const void *a, const void *b)
{
	const struct resource *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Uses that were not seen make it shorter. */
static struct cost idle_of(const struct replay *p, const struct resource_state *s)
{
	u64 now = s->read_ns ? s->read_ns : p->uses_ns ? p->uses_ns : p->last_ns;
	u64 last = s->used_ns > s->begun_ns ? s->used_ns : s->begun_ns;
	s64 idle = now > last ? (s64)(now - last) : 0;
	int sure = (p->open || p->r->end >= 0) && !p->r->losses[MP_LOSS_RESOURCE].count;
	struct cost c = {.known = 1, .open = !sure};

	if (sure)
		c.exact = idle;
	else
		c.inferred = idle;
	c.hi = now < p->last_ns ? idle + (s64)(p->last_ns - now) : idle;
	return c;
}

static int list(struct replay *p, struct report *r)
{
	u32 i;

	r->resources = calloc(p->nr_resources + 1, sizeof(*r->resources));
	if (!r->resources)
		return -ENOMEM;
	for (i = 0; i < p->cap_resources; i++) {
		const struct resource_state *s = &p->resources[i];
		const char *name = s->name ? replay_text(p, s->name) : NULL;

		if (name)
			r->resources[r->nr_resources++] = (struct resource){
				.space = s->space, .name = name, .idle = idle_of(p, s)};
	}
	r->some_resources = r->nr_resources > 0;
	qsort(r->resources, r->nr_resources, sizeof(*r->resources), by_name);
	return 0;
}

int resource_report(struct replay *p, struct report *r)
{
	int err = list(p, r);

	if (!err)
		join_rules(r, p->rules, p->nr_rules);
	return err;
}

static int matches(const struct row *row, const struct name_rule *rule)
{
	int object = row->kind == ORIGIN_FILE || row->kind == ORIGIN_SHMEM;
	u32 i;

	if (rule->by == MP_BY_FUNCTION)
		for (i = 0; i < row->nr_frames; i++)
			if (row->frames[i].function &&
			    !fnmatch(rule->pattern, row->frames[i].function, 0))
				return 1;
	return row->name && object == (rule->by == MP_BY_FILE) && rule->by != MP_BY_FUNCTION &&
	       !fnmatch(rule->pattern, row->name, 0);
}

void join_rules(struct report *r, const struct name_rule *rules, size_t nr)
{
	const struct resource *found;
	struct resource key;
	size_t i, k;

	for (i = 0; i < r->nr_rows; i++) {
		struct row *row = &r->rows[i];

		if (row->ruled)
			row->resource = NULL;
		row->ruled = !row->resource;
		for (k = 0; !row->resource && k < nr; k++)
			if (matches(row, &rules[k]))
				row->resource = rules[k].name;
		if (!r->resources)
			continue;
		key = (struct resource){.space = row->space, .name = row->resource};
		found = key.name
				? bsearch(&key, r->resources, r->nr_resources, sizeof(key), by_name)
				: NULL;
		row->cost[COST_IDLE] = found ? found->idle : (struct cost){0};
	}
}
