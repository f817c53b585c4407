/* SPDX-License-Identifier: GPL-2.0-only
 * Origins become rows with frames; rows that look alike become one. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/shape.h"

static int cmp_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static int by_stack(const void *a, const void *b)
{
	const struct mp_hdr *x = *(const struct mp_hdr *const *)a;
	const struct mp_hdr *y = *(const struct mp_hdr *const *)b;

	return cmp_u64(trace_body(x, stack)->id, trace_body(y, stack)->id);
}

static int by_addr(const void *a, const void *b)
{
	const struct mp_hdr *x = *(const struct mp_hdr *const *)a;
	const struct mp_hdr *y = *(const struct mp_hdr *const *)b;

	if (x->space != y->space)
		return cmp_u64(x->space, y->space);
	if (trace_body(x, symbol)->addr != trace_body(y, symbol)->addr)
		return cmp_u64(trace_body(x, symbol)->addr, trace_body(y, symbol)->addr);
	return x < y ? -1 : x > y; /* inlined frames were written first */
}

static int build(struct replay *p)
{
	struct name_index *ix = &p->names;
	size_t i;

	if (ix->made_for == p->named.nr && ix->stacks)
		return 0;
	names_release(p);
	ix->stacks = calloc(p->named.nr + 1, sizeof(*ix->stacks));
	ix->symbols = calloc(p->named.nr + 1, sizeof(*ix->symbols));
	if (!ix->stacks || !ix->symbols)
		return -ENOMEM;
	for (i = 0; i < p->named.nr; i++) {
		const struct mp_hdr *rec = store_rec(&p->named, i);

		if (rec->type == MP_EV_STACK)
			ix->stacks[ix->nr_stacks++] = rec;
		else
			ix->symbols[ix->nr_symbols++] = rec;
	}
	if (ix->nr_stacks)
		qsort(ix->stacks, ix->nr_stacks, sizeof(*ix->stacks), by_stack);
	if (ix->nr_symbols)
		qsort(ix->symbols, ix->nr_symbols, sizeof(*ix->symbols), by_addr);
	ix->made_for = p->named.nr;
	return 0;
}

void names_release(struct replay *p)
{
	free(p->names.stacks);
	free(p->names.symbols);
	memset(&p->names, 0, sizeof(p->names));
}

static const struct mp_hdr *find_stack(const struct name_index *ix, u64 id)
{
	size_t lo = 0, hi = ix->nr_stacks;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		u64 at = trace_body(ix->stacks[mid], stack)->id;

		if (at == id)
			return ix->stacks[mid];
		if (at < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static size_t first_symbol(const struct name_index *ix, u32 space, u64 addr)
{
	size_t lo = 0, hi = ix->nr_symbols;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct mp_hdr *rec = ix->symbols[mid];

		if (rec->space < space ||
		    (rec->space == space && trace_body(rec, symbol)->addr < addr))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct frame *add_frame(struct replay *p, struct row *row)
{
	struct frame *f;

	if (!(row->nr_frames & (row->nr_frames - 1))) {
		u32 room = row->nr_frames ? row->nr_frames * 2 : 1;

		f = realloc(row->frames, room * sizeof(*f));
		if (!f) {
			p->err = -ENOMEM;
			return NULL;
		}
		row->frames = f;
	}
	f = &row->frames[row->nr_frames++];
	memset(f, 0, sizeof(*f));
	return f;
}

/* All frames of one pc, inlined ones first. Returns its enum mp_frame. */
static u32 add_pc(struct replay *p, const struct name_index *ix, struct row *row, u32 space, u64 pc)
{
	size_t at = first_symbol(ix, space, pc);
	u32 kind = MP_FRAME_UNKNOWN;
	struct frame *f;
	int n = 0;

	for (; at < ix->nr_symbols && ix->symbols[at]->space == space; at++, n++) {
		const struct mp_ev_symbol *sym = trace_body(ix->symbols[at], symbol);

		if (sym->addr != pc)
			break;
		f = add_frame(p, row);
		if (!f)
			return kind;
		f->addr = pc;
		f->offset = sym->offset;
		f->line = sym->line;
		f->inlined = sym->inlined != 0;
		f->function = replay_text(p, sym->function);
		f->module = replay_text(p, sym->module);
		f->build_id = replay_text(p, sym->build_id);
		f->file = replay_text(p, sym->file);
		kind = sym->frame;
	}
	if (!n && (f = add_frame(p, row)))
		f->addr = pc;
	return kind;
}

/* A caller that frame pointers cannot show: a frame without an address, never a neighbour's name.
 */
static void add_gap(struct replay *p, struct row *row)
{
	if (row->nr_frames && !row->frames[row->nr_frames - 1].addr)
		return;
	add_frame(p, row);
}

static int fill_frames(struct replay *p, const struct name_index *ix, struct row *row)
{
	const struct mp_hdr *rec = row->stack ? find_stack(ix, row->stack) : NULL;
	const struct mp_ev_stack *ev = rec ? trace_body(rec, stack) : NULL;
	const u64 *pc = ev ? (const u64 *)(ev + 1) : NULL;
	u32 i, kind;

	for (i = 0; ev && i < ev->n && !p->err; i++) {
		/* A forked child shows its parent's stack, named in the parent's space. */
		kind = add_pc(p, ix, row, rec->space, pc[i]);
		if (!i && kind == MP_FRAME_TOP && ev->raw >= 8 && pc[ev->n])
			kind = add_pc(p, ix, row, rec->space, pc[ev->n]);
		if (kind == MP_FRAME_TOP || kind == MP_FRAME_HIDDEN)
			add_gap(p, row);
	}
	return p->err;
}

static u64 hash_text(u64 h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return (h ^ 0xff) * 0x100000001b3ull;
}

/* Build id + offset + kind: the same for every run of a build. */
static void row_id(struct row *row)
{
	u64 h = hash_text(0xcbf29ce484222325ull, origin_kind_names[row->kind]);
	u32 i;

	h = hash_text(h, row->name);
	for (i = 0; i < row->nr_frames; i++) {
		struct frame *f = &row->frames[i];

		h = hash_text(h, f->build_id ? f->build_id : f->module);
		h = (h ^ f->offset ^ f->inlined) * 0x100000001b3ull;
	}
	snprintf(row->id, sizeof(row->id), "%016llx", (unsigned long long)h);
}

static int interesting(const struct row *row)
{
	int i;

	for (i = 0; i < COST_MAX; i++)
		if (row->cost[i].known && cost_value(&row->cost[i]))
			return 1;
	return 0;
}

static void bound(struct row *row)
{
	s64 reserved = cost_value(&row->cost[COST_RESERVED]);
	int i;

	for (i = 0; i < COST_MAX; i++) {
		struct cost *c = &row->cost[i];

		c->hi = cost_value(c);
		if (i == COST_TOUCHED && c->known && reserved > c->hi)
			c->hi = reserved;
	}
}

int names_attach(struct replay *p, struct report *r)
{
	u32 i, j;
	int err = build(p);

	r->rows = calloc(p->nr_origins + 1, sizeof(*r->rows));
	if (!r->rows)
		err = -ENOMEM;
	for (i = 1; i < p->nr_origins && !err; i++) {
		struct origin *o = &p->origins[i];
		struct row *row = &r->rows[r->nr_rows];

		if (o->unused)
			continue;
		row->kind = o->kind;
		row->name = o->name ? replay_text(p, o->name) : o->class_name;
		row->evidence = o->name ? NULL : shape_evidence(o->class_name);
		row->pid = o->pid;
		row->space = o->space;
		row->comm = o->comm;
		row->stack = o->stack;
		row->generations = o->generations;
		walk_costs(p, o, row->cost);
		if (!interesting(row)) {
			memset(row, 0, sizeof(*row));
			continue;
		}
		r->nr_rows++;
		err = fill_frames(p, &p->names, row);
		bound(row);
		row_id(row);
		r->frames += row->nr_frames;
		for (j = 0; j < row->nr_frames; j++)
			r->unknown_frames += !row->frames[j].function;
	}
	return err;
}

/* ---- grouping and order ---- */

static const char *group_key(const struct row *row, const char *group)
{
	if (!strcmp(group, "process"))
		return row->comm ? row->comm : "?";
	if (row->name || !row->nr_frames)
		return row->name ? row->name : origin_kind_names[row->kind];
	return row->frames[0].function ? row->frames[0].function : "[unknown]";
}

static void merge(struct row *into, struct row *from)
{
	int i;

	for (i = 0; i < COST_MAX; i++) {
		into->cost[i].exact += from->cost[i].exact;
		into->cost[i].inferred += from->cost[i].inferred;
		into->cost[i].sampled += from->cost[i].sampled;
		into->cost[i].hi += from->cost[i].hi;
		into->cost[i].known |= from->cost[i].known;
	}
	into->generations += from->generations;
	free(from->frames);
}

enum grouping { BY_STACK, BY_PROCESS, BY_KEY };

static int same_group(const struct row *a, const struct row *b, enum grouping by, const char *group)
{
	if (by == BY_PROCESS)
		return a->pid == b->pid;
	if (by == BY_STACK)
		return a->space == b->space && !strcmp(a->id, b->id);
	return a->kind == b->kind && !strcmp(group_key(a, group), group_key(b, group));
}

static u64 group_hash(const struct row *row, enum grouping by, const char *group)
{
	u64 h = by == BY_PROCESS ? row->pid : by == BY_STACK ? row->space : row->kind;

	h = (h + 1) * 0x9e3779b97f4a7c15ull;
	if (by != BY_PROCESS)
		h = hash_text(h, by == BY_STACK ? row->id : group_key(row, group));
	return h ^ h >> 32;
}

/* The row as the first of its group. */
static void lead(struct row *row, enum grouping by, const char *group)
{
	if (by == BY_PROCESS) {
		row->name = group_key(row, group);
		row->evidence = NULL;
		row->nr_frames = 0;
	} else if (by == BY_KEY && row->nr_frames) {
		row->name = group_key(row, group);
	}
}

int join_group(struct report *r, const char *group)
{
	enum grouping by = !strcmp(group, "process") ? BY_PROCESS
			   : !strcmp(group, "stack") ? BY_STACK
						     : BY_KEY;
	size_t size = 64, i, n = 0;
	u32 *first; /* number of a group's row, from 1 */
	u64 h;

	if (by == BY_KEY && strcmp(group, "function") && strcmp(group, "mapping") &&
	    strcmp(group, "file"))
		return -EINVAL;
	while (size < r->nr_rows * 2)
		size *= 2;
	first = calloc(size, sizeof(*first));
	if (!first)
		return -ENOMEM;
	for (i = 0; i < r->nr_rows; i++) {
		struct row *row = &r->rows[i];

		h = group_hash(row, by, group) & (size - 1);
		while (first[h] && !same_group(&r->rows[first[h] - 1], row, by, group))
			h = (h + 1) & (size - 1);
		if (first[h]) {
			merge(&r->rows[first[h] - 1], row);
			continue;
		}
		r->rows[n] = *row;
		lead(&r->rows[n], by, group);
		first[h] = (u32)++n;
	}
	r->nr_rows = n;
	free(first);
	return 0;
}

static int by_cost(const void *a, const void *b, void *column)
{
	s64 x = cost_value(&((const struct row *)a)->cost[*(int *)column]);
	s64 y = cost_value(&((const struct row *)b)->cost[*(int *)column]);

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(((const struct row *)a)->id, ((const struct row *)b)->id);
}

void join_sort(struct report *r, int column)
{
	if (r->nr_rows)
		qsort_r(r->rows, r->nr_rows, sizeof(*r->rows), by_cost, &column);
}
