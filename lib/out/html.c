/* SPDX-License-Identifier: GPL-2.0-only
 * One page that needs nothing else: lib/out/html/page.html with the report as JSON inside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "lib/out/intern.h"
#include "lib/out/out.h"

#define DATA_MARK "@DATA@"

/* The page, as it is in the source. */
__asm__(".pushsection .rodata\n"
	"page_html:\n"
	".incbin \"" MEMPROV_PAGE_HTML "\"\n"
	".byte 0\n"
	".popsection\n");
extern const char page_html[] __attribute__((visibility("hidden")));

struct names {
	struct intern known;
	json_t *stack; /* of the row at hand */
};

static int step(void *ctx, const char *name, const struct frame *frame)
{
	struct names *all = ctx;
	s64 n = intern_text(&all->known, name);

	(void)frame;
	if (n < 0)
		return (int)n;
	json_array_append_new(all->stack, json_integer(n));
	return 0;
}

/* A number that is exact, or [value, lo, hi, grade], or null. */
static json_t *value(const struct cost *c)
{
	if (!c->known)
		return json_null();
	if (!cost_is_open(c))
		return json_integer(cost_value(c));
	return json_pack("[I, I, I, s]", (json_int_t)cost_value(c), (json_int_t)cost_lo(c),
			 (json_int_t)cost_hi(c), out_grade(c));
}

static json_t *rows(const struct report *r, struct names *all, const int *columns, int *err)
{
	json_t *list = json_array(), *values;
	int many = join_is_many(r);
	const int *c;
	size_t i;

	for (i = 0; i < r->nr_rows && !*err; i++) {
		const struct row *row = &r->rows[i];

		all->stack = json_array();
		*err = out_path(row, many, step, all);
		values = json_array();
		for (c = columns; *c >= 0; c++)
			json_array_append_new(values, value(&row->cost[*c]));
		json_array_append_new(list,
				      json_pack("[s, s, o, o]", row->id,
						origin_kind_names[row->kind], all->stack, values));
	}
	return list;
}

static json_t *column_list(const int *columns)
{
	json_t *list = json_array();

	for (; *columns >= 0; columns++) {
		const struct cost_column *c = &cost_columns[*columns];

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:s}", "name", c->name, "unit",
						c->unit, "additive", c->additive, "doc", c->doc));
	}
	return list;
}

static json_t *name_list(const struct intern *known)
{
	json_t *list = json_array();
	u32 i;

	for (i = 0; i < known->n; i++)
		json_array_append_new(list, json_text(intern_get(known, i)));
	return list;
}

/* Inside a script element nothing but its end tag, and what begins a comment, is special. */
static void print_json(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			fputs("\\u003c", f);
		else
			fputc(*s, f);
	}
}

/* Those of the columns that are something somewhere, and the one that is shown first. */
static void filled(const struct report *r, const struct out_opts *o, int *ret)
{
	const int *c;
	size_t i;
	int n = 0;

	for (c = o->columns; *c >= 0; c++) {
		for (i = 0; i < r->nr_rows && !cost_hi(&r->rows[i].cost[*c]) &&
			    !cost_value(&r->rows[i].cost[*c]);
		     i++)
			;
		if (i < r->nr_rows || *c == o->column)
			ret[n++] = *c;
	}
	ret[n] = -1;
}

int out_html(FILE *f, const struct report *r, const struct out_opts *o)
{
	const char *mark = strstr(page_html, DATA_MARK);
	char *contract = out_contract(r, o), *text = NULL;
	struct names all = {0};
	int columns[COST_MAX + 1];
	json_t *root = json_object();
	int err = contract && mark ? 0 : -ENOMEM;

	filled(r, o, columns);
	json_object_set_new(root, "contract", json_text(contract));
	json_object_set_new(root, "by", json_string(cost_columns[o->column].name));
	json_object_set_new(root, "columns", column_list(columns));
	json_object_set_new(root, "rows", rows(r, &all, columns, &err));
	json_object_set_new(root, "names", name_list(&all.known));
	if (!err) {
		text = json_dumps(root, JSON_COMPACT);
		err = text ? 0 : -ENOMEM;
	}
	if (!err) {
		fwrite(page_html, 1, (size_t)(mark - page_html), f);
		print_json(f, text);
		fputs(mark + strlen(DATA_MARK), f);
	}
	free(text);
	free(contract);
	json_decref(root);
	intern_free(&all.known);
	return err;
}
