/* SPDX-License-Identifier: GPL-2.0-only
 * One page that needs nothing else: lib/out/html/page.html with the report as JSON inside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include "lib/out/intern.h"
#include "lib/out/out.h"
#include "lib/text/text.h"

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
				      json_pack("{s:s, s:s, s:b, s:b, s:s}", "name", c->name,
						"unit", c->unit, "additive", c->additive, "stock",
						c->kind == COST_STOCK, "doc", c->doc));
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

/* ---- panels ---- */

/* [exact, inferred, sampled], or null. */
static json_t *parts(const struct cost *c)
{
	return c->known ? json_pack("[I, I, I]", (json_int_t)c->exact, (json_int_t)c->inferred,
				    (json_int_t)c->sampled)
			: json_null();
}

static json_t *totals(const struct report *r, const int *columns)
{
	json_t *list = json_array();

	for (; *columns >= 0; columns++)
		json_array_append_new(list, parts(&r->total[*columns]));
	return list;
}

/* The sums of one recording beside the kernel's, its losses and its hooks, each in words. */
static json_t *law(const struct report *r)
{
	json_t *checks = json_array(), *classes = json_object(), *losses = json_array(), *j;
	json_t *hooks = json_array();
	size_t i;

	for (i = 0; i < COST_MAX; i++) {
		const struct check *c = &r->check[i];

		if (!c->judged && c->status != CHECK_UNJUDGED)
			continue;
		j = json_pack("{s:s, s:s, s:s, s:s, s:b}", "column", cost_columns[i].name, "scope",
			      c->scope ? c->scope : "space", "status",
			      check_status_names[c->status], "reason", c->reason ? c->reason : "",
			      "judged", c->judged && c->status != CHECK_UNJUDGED);
		json_object_set_new(j, "kernel", json_integer((json_int_t)c->kernel));
		json_object_set_new(j, "attributed", json_integer((json_int_t)c->attributed));
		json_object_set_new(j, "unattributed", json_integer((json_int_t)c->unattributed));
		json_object_set_new(j, "residual", json_integer((json_int_t)c->residual));
		json_array_append_new(checks, j);
	}
	for (i = 0; i < CLASS_MAX; i++)
		json_object_set_new(classes, mem_class_names[i], parts(&r->classes[i]));
	for (i = 0; i < MP_LOSS_MAX; i++)
		if (r->losses[i].count)
			json_array_append_new(losses,
					      json_pack("[s, I, s]", r->losses[i].name,
							(json_int_t)r->losses[i].count,
							r->losses[i].doc ? r->losses[i].doc : ""));
	for (i = 0; i < r->nr_hooks; i++) {
		j = json_array();
		json_array_append_new(j, json_text(r->hooks[i].capability));
		json_array_append_new(j, json_text(r->hooks[i].provider));
		json_array_append_new(j, json_text(r->hooks[i].stability));
		json_array_append_new(j, json_text(r->hooks[i].reason));
		json_array_append_new(hooks, j);
	}
	return json_pack("{s:o, s:o, s:o, s:I, s:o, s:o}", "who",
			 json_text(r->label ? r->label : r->host), "checks", checks, "classes",
			 classes, "lost", (json_int_t)r->lost, "losses", losses, "hooks", hooks);
}

static json_t *laws(const struct report *r)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < (r->nr_parts ? r->nr_parts : 1); i++)
		json_array_append_new(list, law(r->nr_parts ? r->parts[i] : r));
	return list;
}

static const char *process_of(const struct report *r, u32 space, char *buf, size_t len)
{
	char comm[32];
	size_t i;

	for (i = 0; i < r->nr_rows && r->rows[i].space != space; i++)
		;
	if (i == r->nr_rows)
		return "?";
	snprintf(buf, len, "%s (%u)", text_copy(comm, sizeof(comm), r->rows[i].comm),
		 r->rows[i].pid);
	return buf;
}

/* A letter for each part: its kind, and how full it is, in four steps. */
static const char *bins(const struct strip *s, char *buf)
{
	double share;
	u32 i, level;

	for (i = 0; i < STRIP_BINS; i++) {
		enum bin_kind kind = strip_bin(s, i, &share);

		level = share > 0.75 ? 3 : share > 0.5 ? 2 : share > 0.25 ? 1 : 0;
		buf[i] = kind == BIN_NOTHING ? '.' : (char)('A' + (kind - 1) * 4 + level);
	}
	buf[STRIP_BINS] = 0;
	return buf;
}

static json_t *strips(const struct report *r, const struct strips *all)
{
	char text[STRIP_BINS + 1], who[64], start[24], flags[8];
	json_t *list = json_array(), *j;
	size_t i;

	for (i = 0; all && i < all->n; i++) {
		const struct strip *s = &all->all[i];

		snprintf(start, sizeof(start), "0x%llx", (unsigned long long)s->start);
		snprintf(flags, sizeof(flags), "%c%c%c%c", s->flags & MP_VMA_READ ? 'r' : '-',
			 s->flags & MP_VMA_WRITE ? 'w' : '-', s->flags & MP_VMA_EXEC ? 'x' : '-',
			 s->flags & MP_VMA_SHARED ? 's' : 'p');
		j = json_pack("[s, s, I, s, I, I, I, s]", process_of(r, s->space, who, sizeof(who)),
			      start, (json_int_t)(s->end - s->start), flags,
			      (json_int_t)s->resident, (json_int_t)s->swapped, (json_int_t)s->huge,
			      bins(s, text));
		json_array_append_new(j, json_text(s->name ? s->name : ""));
		json_array_append_new(list, j);
	}
	return json_pack("{s:o, s:I}", "all", list, "left_out",
			 (json_int_t)(all ? all->left_out : 0));
}

/* ---- the page ---- */

static json_t *document(const struct report *r, const struct out_opts *o, const char *contract,
			struct names *all, int *err)
{
	json_t *root = json_object(), *owners = json_array();
	int columns[COST_MAX + 1];

	filled(r, o, columns);
	json_object_set_new(root, "contract", json_text(contract));
	json_object_set_new(root, "by", json_string(cost_columns[o->column].name));
	json_object_set_new(root, "columns", column_list(columns));
	json_object_set_new(root, "totals", totals(r, columns));
	json_object_set_new(root, "rows", rows(r, all, columns, err));
	json_array_append_new(owners, json_string(o->owner_name ? o->owner_name : "auto"));
	if (o->other) {
		json_array_append_new(owners, json_string(o->other_name));
		json_object_set_new(root, "other", rows(o->other, all, columns, err));
	}
	json_object_set_new(root, "owners", owners);
	json_object_set_new(root, "law", laws(r));
	json_object_set_new(root, "strips", strips(r, o->strips));
	json_object_set_new(root, "timeline",
			    o->moments ? out_timeline_json(r, o->moments, o->nr_moments)
				       : json_null());
	json_object_set_new(root, "names", name_list(&all->known));
	return root;
}

int out_html(FILE *f, const struct report *r, const struct out_opts *o)
{
	const char *mark = strstr(page_html, DATA_MARK);
	char *contract = out_contract(r, o), *text = NULL;
	struct names all = {0};
	int err = contract && mark ? 0 : -ENOMEM;
	json_t *root = NULL;

	if (!err)
		root = document(r, o, contract, &all, &err);
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
