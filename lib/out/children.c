/* SPDX-License-Identifier: GPL-2.0-only
 * Functions by what they and all they called have (children), and by what they have themselves
 * (self): the innermost that is the program's own, as in --group function. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/out/intern.h"
#include "lib/out/out.h"
#include "lib/text/text.h"

struct entry {
	const char *name;
	s64 children, self;
	int open_children, open_self;
	size_t last_row; /* number + 1: recursion counts once */
};

struct entries {
	struct intern names;
	struct entry *all;
	u32 room;
};

static struct entry *find(struct entries *e, const char *name)
{
	s64 n = intern_text(&e->names, name);

	if (n < 0)
		return NULL;
	if ((u32)n >= e->room) {
		u32 room = e->room ? e->room * 2 : 64;
		struct entry *all = realloc(e->all, room * sizeof(*all));

		if (!all)
			return NULL;
		memset(all + e->room, 0, (room - e->room) * sizeof(*all));
		e->all = all;
		e->room = room;
	}
	return &e->all[n];
}

static int add(struct entries *e, const struct row *row, size_t number, const struct cost *c)
{
	const char *own = row->name ? row->name : row_function(row);
	char label[FRAME_LABEL];
	struct entry *at;
	u32 i;

	for (i = 0; i < row->nr_frames && !row->name; i++) {
		at = find(e, frame_label(&row->frames[i], label, sizeof(label)));
		if (!at)
			return -ENOMEM;
		if (at->last_row == number)
			continue;
		at->last_row = number;
		at->children += cost_value(c);
		at->open_children |= cost_is_open(c);
	}
	at = find(e, own ? own : "[unknown]");
	if (!at)
		return -ENOMEM;
	at->self += cost_value(c);
	at->open_self |= cost_is_open(c);
	if (at->last_row != number) {
		at->last_row = number;
		at->children += cost_value(c);
		at->open_children |= cost_is_open(c);
	}
	return 0;
}

static int by_children(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->children != y->children)
		return x->children > y->children ? -1 : 1;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void print(FILE *f, const struct entry *e, s64 total, int column, const struct out_opts *o)
{
	fprintf(f, "%6.2f%% %12s%c %6.2f%% %12s%c  ",
		total ? 100.0 * (double)e->children / (double)total : 0,
		out_number(o, column, e->children), e->open_children ? '?' : ' ',
		total ? 100.0 * (double)e->self / (double)total : 0, out_number(o, column, e->self),
		e->open_self ? '?' : ' ');
	text_put(f, e->name);
	fputc('\n', f);
}

int out_children(FILE *f, const struct report *r, const struct out_opts *o)
{
	s64 total = cost_value(&r->total[o->column]);
	struct entries e = {0};
	char *contract = out_contract(r, o);
	int err = contract ? 0 : -ENOMEM;
	size_t i;
	u32 n = 0;

	for (i = 0; i < r->nr_rows && !err; i++)
		if (r->rows[i].cost[o->column].known)
			err = add(&e, &r->rows[i], i + 1, &r->rows[i].cost[o->column]);
	for (i = 0; i < e.names.n && !err; i++) {
		if (!e.all[i].children)
			continue;
		e.all[n] = e.all[i];
		e.all[n++].name = intern_get(&e.names, (u32)i);
	}
	if (!err) {
		if (n)
			qsort(e.all, n, sizeof(*e.all), by_children);
		fputs(contract, f);
		fprintf(f, "%21s  %21s   %s: %% of %s\n", "CHILDREN", "SELF",
			cost_columns[o->column].header, out_number(o, o->column, total));
		for (i = 0; i < n && (!o->rows || i < o->rows); i++)
			print(f, &e.all[i], total, o->column, o);
		if (i < n)
			fprintf(f, "  ... %zu more functions; --rows 0 shows all\n", n - i);
	}
	free(contract);
	free(e.all);
	intern_free(&e.names);
	return err;
}
