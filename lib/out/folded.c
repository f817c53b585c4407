/* SPDX-License-Identifier: GPL-2.0-only
 * Folded stacks: NAME;NAME;... VALUE, for flamegraph.pl and its kin. */
#include <errno.h>
#include "lib/join/diff.h"
#include "lib/out/out.h"

struct line {
	FILE *f;
	int n;
};

static int step(void *ctx, const char *name, const struct frame *frame)
{
	struct line *l = ctx;

	(void)frame;
	if (l->n++)
		fputc(';', l->f);
	for (; *name; name++)
		fputc(*name == ';' ? ':' : *name, l->f);
	return 0;
}

int out_folded(FILE *f, const struct report *r, const struct out_opts *o)
{
	int many = join_is_many(r);
	size_t i, shown = 0;
	s64 rest = 0;

	for (i = 0; i < r->nr_rows; i++) {
		s64 v = cost_value(&r->rows[i].cost[o->column]);
		struct line l = {f, 0};

		if (!r->rows[i].cost[o->column].known || v <= 0)
			continue;
		if (o->rows && shown++ >= o->rows) {
			rest += v;
			continue;
		}
		out_path(&r->rows[i], many, step, &l);
		fprintf(f, " %lld\n", (long long)v);
	}
	/* The width stays the whole. */
	if (rest)
		fprintf(f, "[other rows] %lld\n", (long long)rest);
	return 0;
}

int out_diff_folded(FILE *f, const struct diff *d)
{
	size_t i;

	if (!cost_columns[d->column].additive)
		return -ENODATA;
	for (i = 0; i < d->nr_all; i++) {
		const struct diff_row *row = &d->rows[i];
		double base = diff_total(&row->base), next = diff_total(&row->next);
		struct line l = {f, 0};

		if (!row->known || (base <= 0 && next <= 0))
			continue;
		out_path(row->row, 0, step, &l);
		fprintf(f, " %.0f %.0f\n", base, next);
	}
	return 0;
}
