/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/strips.h"

struct gather {
	struct strips *s;
	struct strip *now; /* of the picture being read */
	size_t nr_now, cap_now;
	size_t cap;
};

static void *grown(void *all, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;
	void *p;

	if (n < *cap)
		return all;
	p = realloc(all, more * size);
	if (p)
		*cap = more;
	return p;
}

/* [start, end) of a run, over the parts of its strip. */
static void fill(struct strip *s, u64 start, u64 end, u32 flags)
{
	u64 size = s->end - s->start;
	u32 i = (u32)((double)(start - s->start) / (double)size * STRIP_BINS);

	for (i = i ? i - 1 : 0; i < STRIP_BINS; i++) {
		u64 from = s->start + (u64)((double)size / STRIP_BINS * i);
		u64 to = i + 1 == STRIP_BINS
				 ? s->end
				 : s->start + (u64)((double)size / STRIP_BINS * (i + 1));
		u64 a = start > from ? start : from, b = end < to ? end : to;

		if (from >= end)
			return;
		if (a >= b)
			continue;
		if (flags & MP_PAGE_RESIDENT)
			s->bins[i].resident += b - a;
		if (flags & MP_PAGE_SWAPPED)
			s->bins[i].swapped += b - a;
		if (flags & MP_PAGE_THP)
			s->bins[i].huge += b - a;
	}
}

static int add_vma(struct gather *g, const struct mp_hdr *rec)
{
	const struct mp_ev_vma *v = trace_body(rec, vma);
	struct strip *all, *s;

	if (v->end <= v->start || v->flags & MP_VMA_GATE)
		return 0;
	all = grown(g->now, g->nr_now, &g->cap_now, sizeof(*all));
	if (!all)
		return -ENOMEM;
	g->now = all;
	s = &all[g->nr_now++];
	*s = (struct strip){
		.space = rec->space, .flags = v->flags, .start = v->start, .end = v->end};
	s->name = v->name ? trace_reader_string(g->s->reader, v->name) : NULL;
	return 0;
}

static void add_run(struct gather *g, const struct mp_hdr *rec)
{
	const struct mp_ev_run *r = trace_body(rec, run);
	struct strip *s = g->nr_now ? &g->now[g->nr_now - 1] : NULL;
	u64 bytes = r->pages * MP_PAGE_SIZE;

	if (!s || r->start < s->start || r->start >= s->end || bytes > s->end - r->start)
		return;
	s->resident += r->flags & MP_PAGE_RESIDENT ? bytes : 0;
	s->swapped += r->flags & MP_PAGE_SWAPPED ? bytes : 0;
	s->huge += r->flags & MP_PAGE_THP ? bytes : 0;
	fill(s, r->start, r->start + bytes, r->flags);
}

/* A picture is whole: it takes the place of the one before. */
static int take(struct gather *g, u32 space)
{
	struct strips *s = g->s;
	size_t i, n = 0;

	for (i = 0; i < s->n; i++)
		if (s->all[i].space != space)
			s->all[n++] = s->all[i];
	s->n = n;
	for (i = 0; i < g->nr_now; i++) {
		struct strip *all = grown(s->all, s->n, &g->cap, sizeof(*all));

		if (!all)
			return -ENOMEM;
		s->all = all;
		all[s->n++] = g->now[i];
	}
	return 0;
}

static int add(struct gather *g, const struct mp_hdr *rec)
{
	switch (rec->type) {
	case MP_EV_WALK:
		if (trace_body(rec, walk)->end)
			return take(g, rec->space);
		g->nr_now = 0;
		return 0;
	case MP_EV_VMA:
		return add_vma(g, rec);
	case MP_EV_RUN:
		add_run(g, rec);
		return 0;
	default:
		return 0;
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct strip *x = a, *y = b;
	u64 u = x->resident + x->swapped, v = y->resident + y->swapped;

	if (u != v)
		return u > v ? -1 : 1;
	u = x->end - x->start;
	v = y->end - y->start;
	return u != v ? (u > v ? -1 : 1) : (x->start > y->start) - (x->start < y->start);
}

static int by_address(const void *a, const void *b)
{
	const struct strip *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int has_address(const void *key, const void *strip)
{
	const struct strip *k = key, *s = strip;

	if (k->space != s->space)
		return k->space < s->space ? -1 : 1;
	return k->start < s->start ? -1 : k->start >= s->end;
}

static int add_faults(struct strips *s)
{
	const struct mp_hdr *first;
	struct strip key = {0}, *at;
	u32 nr, i;
	int n;

	while ((n = trace_reader_bulk(s->reader, &first, &nr)) > 0) {
		const u8 *p = (const u8 *)first;

		for (i = 0; i < nr; i++, p += first->size) {
			const struct mp_hdr *rec = (const struct mp_hdr *)p;

			key.space = rec->space;
			key.start = trace_body(rec, fault)->addr;
			at = bsearch(&key, s->all, s->n, sizeof(key), has_address);
			if (!at)
				continue;
			at->bins[(u32)((double)(key.start - at->start) /
				       (double)(at->end - at->start) * STRIP_BINS)]
				.touched = 1;
		}
	}
	return n;
}

int strips_read(const char *path, size_t max, struct strips **ret_s)
{
	struct strips *s = calloc(1, sizeof(*s));
	struct gather g = {.s = s};
	const struct mp_hdr *rec;
	int n = 0, err = s ? trace_reader_open(path, &s->reader) : -ENOMEM;

	if (!err)
		trace_reader_leave_out(s->reader, MP_EV_FAULT);
	while (!err && (n = trace_reader_next(s->reader, &rec)) > 0)
		err = add(&g, rec);
	free(g.now);
	if (!err)
		err = n < 0 ? n : trace_reader_again(s->reader);
	if (!err && s->n) {
		qsort(s->all, s->n, sizeof(*s->all), by_weight);
		s->left_out = s->n > max ? s->n - max : 0;
		s->n -= s->left_out;
		qsort(s->all, s->n, sizeof(*s->all), by_address);
		err = add_faults(s);
	}
	if (err)
		strips_free(&s);
	else
		*ret_s = s;
	return err;
}

void strips_free(struct strips **s)
{
	if (!*s)
		return;
	trace_reader_close(&(*s)->reader);
	free((*s)->all);
	free(*s);
	*s = NULL;
}

enum bin_kind strip_bin(const struct strip *s, u32 bin, double *ret_share)
{
	double size = (double)(s->end - s->start) / STRIP_BINS;
	u64 resident = s->bins[bin].resident, swapped = s->bins[bin].swapped;
	u64 most = resident > swapped ? resident : swapped;

	*ret_share = size > 0 ? (double)most / size : 0;
	*ret_share = *ret_share > 1 ? 1 : *ret_share;
	if (!most)
		return BIN_NOTHING;
	if (swapped > resident)
		return BIN_SWAPPED;
	if (s->bins[bin].huge * 2 > resident)
		return BIN_HUGE;
	return s->bins[bin].touched ? BIN_TOUCHED : BIN_RESIDENT;
}
