/* SPDX-License-Identifier: GPL-2.0-only
 * A page of a report with N different stacks, made by hand: page N > page.html. What is in it can
 * be reckoned: row i holds (i % 1000 + 1) pages, function needle_i is in row i alone. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/out/out.h"

#define DEPTH 24u

static char *text(const char *what, size_t i)
{
	char *s = malloc(64);

	if (!s)
		abort();
	snprintf(s, 64, "%s_%zu", what, i);
	return s;
}

/* A tree: the outer frames are shared by many, the innermost is the row's own. */
static void fill(struct row *row, size_t i, char **shared)
{
	size_t path = i;
	u32 d;

	row->frames = calloc(DEPTH, sizeof(*row->frames));
	if (!row->frames)
		abort();
	row->nr_frames = DEPTH;
	row->frames[0].function = text("needle", i);
	for (d = 1; d < DEPTH; d++) {
		row->frames[d].function = shared[(path * 31 + d * 97) % 2000];
		path /= 3;
	}
	row->kind = ORIGIN_MMAP;
	row->pid = 7;
	row->comm = "many";
	snprintf(row->id, sizeof(row->id), "%016zx", i);
	for (d = 0; d < COST_MAX; d++) {
		s64 v = (s64)(i % 1000 + 1) * 4096;

		row->cost[d] = d % 3 ? (struct cost){.exact = v, .known = 1}
				     : (struct cost){.inferred = v, .hi = v, .known = 1};
	}
}

int main(int argc, char **argv)
{
	static int columns[] = {COST_RESIDENT, COST_RESERVED, COST_PSS,
				COST_TOUCHED,  COST_SWAPPED,  -1};
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 50000, i;
	struct report r = {.has_walk = 1, .nr_rows = n, .host = "bench", .kernel = "none"}, other;
	struct out_opts o = {.column = COST_RESIDENT,
			     .columns = columns,
			     .group = "stack",
			     .owner_name = "auto",
			     .other_name = "fault"};
	char *shared[2000];
	int c;

	r.rows = calloc(n, sizeof(*r.rows));
	if (!r.rows)
		abort();
	for (i = 0; i < 2000; i++)
		shared[i] = text("function_of_the_program", i);
	for (i = 0; i < n; i++) {
		fill(&r.rows[i], i, shared);
		for (c = 0; c < COST_MAX; c++) {
			r.total[c].exact += r.rows[i].cost[c].exact;
			r.total[c].inferred += r.rows[i].cost[c].inferred;
			r.total[c].known = 1;
		}
	}
	other = r;
	o.other = &other;
	return out_html(stdout, &r, &o) ? 1 : 0;
}
