/* SPDX-License-Identifier: GPL-2.0-only
 * Rows of call frame information become a table by file offset: a mapping is then all that it takes
 * to turn an address into a place in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/unwind/build.h"

#define NO_RULE 0 /* the first rule of every table: not covered */

static int grow(void *items, size_t nr, size_t *cap, size_t size)
{
	void **at = items, *more;

	if (nr < *cap)
		return 0;
	more = reallocarray(*at, *cap ? *cap * 2 : 256, size);
	if (!more)
		return -ENOMEM;
	*at = more;
	*cap = *cap ? *cap * 2 : 256;
	return 0;
}

/* ---- rules, each once ---- */

static size_t hash_rule(const struct mp_rule *r)
{
	u64 w[2];

	memcpy(w, r, sizeof(w));
	return (size_t)((w[0] ^ w[1] * 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull >> 32);
}

static int rehash(struct builder *b)
{
	size_t cap = b->cap_seen ? b->cap_seen * 2 : 1024, i, h;
	u32 *seen = calloc(cap, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	for (i = 0; i < b->nr_rules; i++) {
		for (h = hash_rule(&b->rules[i]) & (cap - 1); seen[h]; h = (h + 1) & (cap - 1))
			;
		seen[h] = (u32)i + 1;
	}
	free(b->seen);
	b->seen = seen;
	b->cap_seen = cap;
	return 0;
}

/* The number of a rule; where there are too many, that of none. -ENOMEM. */
static s64 number_of(struct builder *b, const struct mp_rule *rule)
{
	size_t h;

	if (b->nr_rules * 2 >= b->cap_seen && rehash(b))
		return -ENOMEM;
	for (h = hash_rule(rule) & (b->cap_seen - 1); b->seen[h]; h = (h + 1) & (b->cap_seen - 1))
		if (!memcmp(&b->rules[b->seen[h] - 1], rule, sizeof(*rule)))
			return b->seen[h] - 1;
	if (b->nr_rules == MP_MAX_RULES)
		return NO_RULE;
	if (grow(&b->rules, b->nr_rules, &b->cap_rules, sizeof(*b->rules)))
		return -ENOMEM;
	b->rules[b->nr_rules] = *rule;
	b->seen[h] = (u32)++b->nr_rules;
	return (s64)b->nr_rules - 1;
}

/* ---- pieces of code under one rule ---- */

static int put_piece(struct builder *b, u64 start, u64 end, u32 rule)
{
	struct pieces *to = &b->pieces[b->source];
	struct piece *last = to->nr ? &to->p[to->nr - 1] : NULL;

	if (last && last->end == start && last->rule == rule) {
		last->end = end;
		return 0;
	}
	if (to->nr == MP_MAX_CELLS)
		return -E2BIG;
	if (grow(&to->p, to->nr, &to->cap, sizeof(*to->p)))
		return -ENOMEM;
	to->p[to->nr++] = (struct piece){start, end, rule};
	return 0;
}

/* A row of cfi_read(): what of it lies in the file. */
static int add_row(void *ctx, u64 pc, u64 end, const struct mp_rule *rule)
{
	struct builder *b = ctx;
	struct mp_rule kept = *rule;
	s64 number;
	int err;
	size_t i;

	/* Go describes its own code in .debug_frame alone. */
	kept.flags = b->is_go && b->source == FROM_DEBUG_FRAME ? MP_RULE_KEEPS_FP | MP_RULE_BX_GONE
							       : kept.flags;
	number = number_of(b, &kept);
	err = number < 0 ? (int)number : 0;
	for (i = 0; i < b->nr_segments && !err; i++) {
		const struct segment *s = &b->segments[i];
		u64 from = pc > s->vaddr ? pc : s->vaddr;
		u64 to = end < s->vaddr + s->len ? end : s->vaddr + s->len;

		if (from < to)
			err = put_piece(b, from - s->vaddr + s->offset, to - s->vaddr + s->offset,
					(u32)number);
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* ---- the table ---- */

struct rows {
	u64 *cells;
	size_t nr, cap;
	u64 end; /* offset behind the last one */
};

static int put_row(struct rows *r, u64 start, u32 rule)
{
	if (r->nr && r->cells[r->nr - 1] >> 32 == rule)
		return 0;
	if (grow(&r->cells, r->nr, &r->cap, sizeof(*r->cells)))
		return -ENOMEM;
	r->cells[r->nr++] = MP_ROW(start, rule);
	return 0;
}

/* From where the last one ended. */
static int put_rows(struct rows *r, u64 start, u64 end, u32 rule)
{
	int err = 0;

	if (start < r->end)
		start = r->end;
	if (start >= end)
		return 0;
	if (start > r->end)
		err = put_row(r, r->end, NO_RULE);
	if (!err)
		err = put_row(r, start, rule);
	r->end = end;
	return err;
}

static int add_piece(struct pieces *to, u64 start, u64 end, u32 rule)
{
	if (start >= end)
		return 0;
	if (grow(&to->p, to->nr, &to->cap, sizeof(*to->p)))
		return -ENOMEM;
	to->p[to->nr++] = (struct piece){start, end, rule};
	return 0;
}

/* All of a, and of b what lies between. */
static int overlay(const struct pieces *a, const struct pieces *b, struct pieces *ret)
{
	u64 from = 0;
	size_t i, j = 0;
	int err = 0;

	for (i = 0; i <= a->nr && !err; i++) {
		u64 gap_end = i < a->nr ? a->p[i].start : ~0ull;

		while (j < b->nr && b->p[j].start < gap_end && !err) {
			const struct piece *p = &b->p[j];

			err = add_piece(ret, p->start > from ? p->start : from,
					p->end < gap_end ? p->end : gap_end, p->rule);
			if (p->end > gap_end)
				break; /* it may go on behind the next one of a */
			j++;
		}
		if (!err && i < a->nr) {
			err = add_piece(ret, a->p[i].start, a->p[i].end, a->p[i].rule);
			from = a->p[i].end;
		}
	}
	return err;
}

static int merge(struct builder *b, struct rows *r)
{
	struct pieces tables = {0}, all = {0}, *code = &b->pieces[FROM_CODE];
	int err = overlay(&b->pieces[FROM_EH_FRAME], &b->pieces[FROM_DEBUG_FRAME], &tables);
	size_t i;

	if (code->nr)
		qsort(code->p, code->nr, sizeof(*code->p), by_start);
	if (!err)
		err = overlay(&tables, code, &all);
	for (i = 0; i < all.nr && !err; i++)
		err = put_rows(r, all.p[i].start, all.p[i].end, all.p[i].rule);
	free(tables.p);
	free(all.p);
	return err ? err : put_row(r, r->end, NO_RULE);
}

u64 builder_covered(const struct builder *b, u64 start, u64 end)
{
	const struct pieces *p = &b->pieces[FROM_EH_FRAME];
	u64 sum = 0;
	size_t i;

	for (i = 0; i < p->nr; i++)
		if (p->p[i].start >= start && p->p[i].end <= end)
			sum += p->p[i].end - p->p[i].start;
	return sum;
}

int builder_covers(const struct builder *b, u64 offset)
{
	int source;

	for (source = FROM_EH_FRAME; source <= FROM_DEBUG_FRAME; source++) {
		const struct pieces *p = &b->pieces[source];
		size_t lo = 0, hi = p->nr;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (p->p[mid].end <= offset)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo < p->nr && p->p[lo].start <= offset)
			return 1;
	}
	return 0;
}

int builder_put(struct builder *b, u64 offset, u64 end, const struct mp_rule *rule)
{
	s64 number = number_of(b, rule);

	b->source = FROM_CODE;
	return number < 0 ? (int)number : put_piece(b, offset, end, (u32)number);
}

int builder_start(struct builder *b)
{
	const struct mp_rule none = {.flags = b->is_go ? MP_RULE_KEEPS_FP : 0};

	return number_of(b, &none) < 0 ? -ENOMEM : 0;
}

int builder_read(struct builder *b, const struct cfi_section *sec)
{
	struct pieces *p = &b->pieces[b->source = sec->is_eh ? FROM_EH_FRAME : FROM_DEBUG_FRAME];
	int err = cfi_read(sec, add_row, b);

	if (p->nr)
		qsort(p->p, p->nr, sizeof(*p->p), by_start);
	return err;
}

int builder_finish(struct builder *b, struct unwind_table *ret)
{
	size_t rule_cells = b->nr_rules * MP_RULE_CELLS;
	struct rows r = {0};
	u64 *cells = NULL;
	int err = merge(b, &r);

	if (!err && rule_cells + r.nr > MP_MAX_CELLS)
		err = -E2BIG;
	if (!err)
		cells = malloc((rule_cells + r.nr) * sizeof(*cells));
	if (!err && !cells)
		err = -ENOMEM;
	if (!err) {
		memcpy(cells, b->rules, rule_cells * sizeof(*cells));
		memcpy(cells + rule_cells, r.cells, r.nr * sizeof(*cells));
		*ret = (struct unwind_table){cells, (u32)b->nr_rules, (u32)r.nr};
	}
	free(r.cells);
	return err;
}

void builder_release(struct builder *b)
{
	int i;

	free(b->rules);
	free(b->seen);
	for (i = 0; i < SOURCES; i++)
		free(b->pieces[i].p);
	memset(b, 0, sizeof(*b));
}

void unwind_table_release(struct unwind_table *t)
{
	free(t->cells);
	memset(t, 0, sizeof(*t));
}

static const u64 *rows_of(const struct unwind_table *t)
{
	return t->cells + (size_t)t->nr_rules * MP_RULE_CELLS;
}

int unwind_table_good(const struct unwind_table *t)
{
	const u64 *rows = rows_of(t);
	u32 i;

	if (!t->nr_rules || t->nr_rules > MP_MAX_RULES ||
	    (u64)t->nr_rules * MP_RULE_CELLS + t->nr_rows > MP_MAX_CELLS)
		return 0;
	for (i = 0; i < t->nr_rows; i++)
		if (rows[i] >> 32 >= t->nr_rules || (i && (u32)rows[i] <= (u32)rows[i - 1]))
			return 0;
	return 1;
}

const struct mp_rule *unwind_table_find(const struct unwind_table *t, u64 offset)
{
	const u64 *rows = rows_of(t);
	u32 lo = 0, hi = t->nr_rows;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if ((u32)rows[mid] <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || !(rows[lo - 1] >> 32))
		return NULL;
	return (const struct mp_rule *)(t->cells + (rows[lo - 1] >> 32) * MP_RULE_CELLS);
}
