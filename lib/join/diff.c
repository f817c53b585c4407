/* SPDX-License-Identifier: GPL-2.0-only
 * Matches the rows of two reports by what they are called, since addresses, pids and stack numbers
 * differ from run to run, and judges rules over the totals. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/diff.h"

#define DEPTH 5

const char *const diff_match_names[] = {
	[DIFF_EXACT] = "exact",
	[DIFF_FUNCTION] = "function",
	[DIFF_NEW] = "new",
	[DIFF_GONE] = "gone",
};

/* Rows of one report that are called the same. */
struct group {
	const struct row *row;
	struct cost cost;
};

struct side {
	const struct report *r;
	struct group *groups;
	size_t n;
};

/* ---- what a row is called ---- */

static int cmp_text(const char *a, const char *b)
{
	if (!a || !b)
		return !!a - !!b;
	return strcmp(a, b);
}

static int cmp_frame(const struct frame *a, const struct frame *b)
{
	int c = cmp_text(a->function, b->function);

	if (c || a->function)
		return c;
	/* Nameless code is told apart by where it is in its file. */
	c = cmp_text(a->module, b->module);
	return c ? c : (a->offset > b->offset) - (a->offset < b->offset);
}

/* By the nearest frames of the program: those of an allocator are the same for all its callers. */
static int cmp_rows(const struct row *a, const struct row *b)
{
	u32 x = row_program_frames(a), y = row_program_frames(b), i;
	u32 nx = a->nr_frames - x, ny = b->nr_frames - y;
	int c;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	c = cmp_text(a->name, b->name);
	if (c || a->name)
		return c;
	for (i = 0; i < DEPTH && i < nx && i < ny; i++) {
		c = cmp_frame(&a->frames[x + i], &b->frames[y + i]);
		if (c)
			return c;
	}
	if (i == DEPTH || nx == ny)
		return 0;
	return nx < ny ? -1 : 1;
}

/* The same file of another release: /opt/2/lib/libx.so.5 is /opt/1/lib/libx.so.4. */
static int cmp_module(const char *a, const char *b)
{
	const char *x = a ? strrchr(a, '/') : NULL, *y = b ? strrchr(b, '/') : NULL, *so;
	size_t nx, ny;
	int c;

	if (!a || !b)
		return !!a - !!b;
	x = x ? x + 1 : a;
	y = y ? y + 1 : b;
	so = strstr(x, ".so");
	nx = so ? (size_t)(so - x) : strlen(x);
	so = strstr(y, ".so");
	ny = so ? (size_t)(so - y) : strlen(y);
	c = strncmp(x, y, nx < ny ? nx : ny);
	return c ? c : (nx > ny) - (nx < ny);
}

static int by_frames(const void *a, const void *b)
{
	return cmp_rows(((const struct group *)a)->row, ((const struct group *)b)->row);
}

static const char *own_module(const struct row *row)
{
	const struct frame *own = row_own_frame(row);

	return own ? own->module : NULL;
}

static int by_function(const void *a, const void *b)
{
	const struct row *x = ((const struct group *)a)->row, *y = ((const struct group *)b)->row;
	int c;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	c = cmp_text(x->name, y->name);
	if (!c)
		c = cmp_text(row_function(x), row_function(y));
	if (!c)
		c = cmp_module(own_module(x), own_module(y));
	return c;
}

static void add(struct cost *into, const struct cost *c)
{
	if (!c->known)
		return;
	into->exact += c->exact;
	into->inferred += c->inferred + c->sampled;
	into->counted += c->counted;
	into->hi += c->hi;
	into->known = 1;
	into->open |= c->open;
}

static int fill(struct side *s, const struct report *r, int column)
{
	size_t i, n = 0;

	s->r = r;
	s->groups = calloc(r->nr_rows + 1, sizeof(*s->groups));
	if (!s->groups)
		return -ENOMEM;
	for (i = 0; i < r->nr_rows; i++) {
		s->groups[i].row = &r->rows[i];
		add(&s->groups[i].cost, &r->rows[i].cost[column]);
	}
	qsort(s->groups, r->nr_rows, sizeof(*s->groups), by_frames);
	for (i = 0; i < r->nr_rows; i++) {
		if (n && !by_frames(&s->groups[n - 1], &s->groups[i]))
			add(&s->groups[n - 1].cost, &s->groups[i].cost);
		else
			s->groups[n++] = s->groups[i];
	}
	s->n = n;
	return 0;
}

/* ---- values ---- */

struct diff_value diff_value_of(const struct report *r, int column, const struct cost *c)
{
	struct diff_value v = {.known = c->known};
	double per = 1, exact = (double)c->exact;

	if (cost_columns[column].kind == COST_FLOW) {
		if (!r->duration_ns)
			v.known = 0;
		else
			per = 1e9 / (double)r->duration_ns;
	}
	if (!v.known)
		return v;
	v.exact = exact * per;
	v.inferred = (double)(c->inferred + c->sampled) * per;
	v.lo = (double)cost_lo(c) * per;
	v.hi = (double)cost_hi(c) * per;
	return v;
}

struct diff_value diff_sum(const struct report *r, int column)
{
	return diff_value_of(r, column, &r->total[column]);
}

static int is_same(const struct diff_row *row)
{
	return row->known && row->delta == 0;
}

/* b, n: NULL when that recording has no such row, which is zero if it knows the column at all. */
static void emit(struct diff *d, enum diff_match match, const struct group *b,
		 const struct group *n)
{
	struct diff_row *row = &d->rows[d->nr_all];
	int known;

	memset(row, 0, sizeof(*row));
	row->match = match;
	row->row = n ? n->row : b->row;
	if (b)
		row->base = diff_value_of(d->base, d->column, &b->cost);
	if (n)
		row->next = diff_value_of(d->next, d->column, &n->cost);
	if (!row->base.known && !row->next.known)
		return;
	known = b ? row->base.known : diff_sum(d->base, d->column).known;
	row->known = known && (n ? row->next.known : diff_sum(d->next, d->column).known);
	if (row->known) {
		row->delta = diff_total(&row->next) - diff_total(&row->base);
		row->lo = row->next.lo - row->base.hi;
		row->hi = row->next.hi - row->base.lo;
		row->significant = row->lo > 0 || row->hi < 0;
	}
	d->nr_rows += !is_same(row);
	d->nr_all++;
}

/* ---- pairs ---- */

/* Pairs what has the same five frames and leaves the rest in both sides. */
static void pair_exact(struct diff *d, struct side *b, struct side *n)
{
	size_t i = 0, j = 0, left_b = 0, left_n = 0;

	while (i < b->n || j < n->n) {
		int c = i == b->n ? 1 : j == n->n ? -1 : by_frames(&b->groups[i], &n->groups[j]);

		if (c < 0)
			b->groups[left_b++] = b->groups[i++];
		else if (c > 0)
			n->groups[left_n++] = n->groups[j++];
		else
			emit(d, DIFF_EXACT, &b->groups[i++], &n->groups[j++]);
	}
	b->n = left_b;
	n->n = left_n;
}

/* All from *at on with the same own function, as one. */
static struct group take_function(const struct side *s, size_t *at)
{
	struct group all = s->groups[(*at)++];

	for (; *at < s->n && !by_function(&all, &s->groups[*at]); (*at)++)
		add(&all.cost, &s->groups[*at].cost);
	return all;
}

/* That two programs call mmap does not make them the same. */
static int has_function(const struct group *g)
{
	const struct frame *own = row_own_frame(g->row);

	return !g->row->name && own && own->function;
}

static void pair_functions(struct diff *d, struct side *b, struct side *n)
{
	size_t i = 0, j = 0;

	qsort(b->groups, b->n, sizeof(*b->groups), by_function);
	qsort(n->groups, n->n, sizeof(*n->groups), by_function);
	while (i < b->n || j < n->n) {
		int c = i == b->n ? 1 : j == n->n ? -1 : by_function(&b->groups[i], &n->groups[j]);

		if (!c && has_function(&b->groups[i])) {
			struct group x = take_function(b, &i), y = take_function(n, &j);

			emit(d, DIFF_FUNCTION, &x, &y);
		} else if (c <= 0) {
			emit(d, DIFF_GONE, &b->groups[i++], NULL);
		} else {
			emit(d, DIFF_NEW, NULL, &n->groups[j++]);
		}
	}
}

static int by_change(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double dx = x->delta < 0 ? -x->delta : x->delta, dy = y->delta < 0 ? -y->delta : y->delta;

	if (is_same(x) != is_same(y))
		return is_same(x) - is_same(y);
	if (x->known != y->known)
		return y->known - x->known;
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(x->row->id, y->row->id);
}

int diff_new(const struct report *base, const struct report *next, int column, struct diff **ret_d)
{
	struct diff *d = calloc(1, sizeof(*d));
	struct side b = {0}, n = {0};
	int err = -ENOMEM;

	if (!d)
		return err;
	d->base = base;
	d->next = next;
	d->column = column;
	d->rows = calloc(base->nr_rows + next->nr_rows + 1, sizeof(*d->rows));
	if (d->rows)
		err = fill(&b, base, column);
	if (!err)
		err = fill(&n, next, column);
	if (!err) {
		pair_exact(d, &b, &n);
		pair_functions(d, &b, &n);
		qsort(d->rows, d->nr_all, sizeof(*d->rows), by_change);
	}
	free(b.groups);
	free(n.groups);
	if (err)
		diff_free(&d);
	else
		*ret_d = d;
	return err;
}

void diff_free(struct diff **d)
{
	if (!*d)
		return;
	free((*d)->rows);
	free(*d);
	*d = NULL;
}

const char *diff_owners(const struct diff *d)
{
	if (!d->base->no_alloc != !d->next->no_alloc)
		return d->base->no_alloc ? "new has the owners of allocations, base of mappings"
					 : "base has the owners of allocations, new of mappings";
	if (!d->base->no_map != !d->next->no_map)
		return d->base->no_map ? "base saw no mapping calls" : "new saw no mapping calls";
	return NULL;
}
