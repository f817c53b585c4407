/* SPDX-License-Identifier: GPL-2.0-only
 * A recording along its time. Between two pictures nothing is known of stocks: they are - there. */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

/* A stock is of its picture and said once; a flow is what came since the moment before. Returns
 * whether it is known. */
static int value_of(const struct moment *all, size_t i, int column, s64 *ret, int *ret_open)
{
	const struct cost *c = &all[i].total[column];
	int fresh = all[i].picture_ns && (!i || all[i].picture_ns != all[i - 1].picture_ns);
	int stock = cost_columns[column].kind == COST_STOCK || column == COST_GROWN;

	if (!c->known || (stock && !fresh))
		return 0;
	*ret = cost_value(c);
	*ret_open = cost_is_open(c);
	if (!stock && i && all[i - 1].total[column].known)
		*ret -= cost_value(&all[i - 1].total[column]);
	return 1;
}

static void marks(FILE *f, const struct report *r, u64 from, u64 to)
{
	size_t i;

	for (i = 0; i < r->nr_marks; i++) {
		if (r->marks[i].time_ns < from || r->marks[i].time_ns >= to)
			continue;
		fprintf(f, "%10.3f  mark: ", (double)r->marks[i].time_ns / 1e9);
		text_put(f, r->marks[i].text);
		fputc('\n', f);
	}
}

static int table(FILE *f, const struct report *r, const struct moment *all, size_t n,
		 const struct out_opts *o)
{
	char *contract = out_contract(r, o);
	const int *c;
	size_t i;
	s64 v;
	int open;

	if (!contract)
		return -ENOMEM;
	fputs(contract, f);
	fprintf(f, "%10s ", "SECONDS");
	for (c = o->columns; *c >= 0; c++)
		fprintf(f, "%13s ", cost_columns[*c].header);
	fputc('\n', f);
	for (i = 0; i < n; i++) {
		marks(f, r, i ? all[i - 1].time_ns : 0, i + 1 < n ? all[i].time_ns : ~0ull);
		fprintf(f, "%10.3f ", (double)all[i].time_ns / 1e9);
		for (c = o->columns; *c >= 0; c++) {
			if (value_of(all, i, *c, &v, &open))
				fprintf(f, "%12s%c ", out_number(o, *c, v), open ? '?' : ' ');
			else
				fprintf(f, "%12s  ", "-");
		}
		fputc('\n', f);
	}
	fputs("  flows: since the line before; stocks: of a new picture, else -; ? inferred\n", f);
	return 0;
}

static int csv(FILE *f, const struct moment *all, size_t n, const struct out_opts *o)
{
	const int *c;
	size_t i;
	s64 v;
	int open;

	fputs("time_ns,picture_ns", f);
	for (c = o->columns; *c >= 0; c++)
		fprintf(f, ",%s", cost_columns[*c].name);
	fputc('\n', f);
	for (i = 0; i < n; i++) {
		fprintf(f, "%llu,", (unsigned long long)all[i].time_ns);
		if (all[i].picture_ns)
			fprintf(f, "%llu", (unsigned long long)all[i].picture_ns);
		for (c = o->columns; *c >= 0; c++) {
			fputc(',', f);
			if (value_of(all, i, *c, &v, &open))
				fprintf(f, "%lld", (long long)v);
		}
		fputc('\n', f);
	}
	return 0;
}

struct json_t *out_timeline_json(const struct report *r, const struct moment *all, size_t n)
{
	json_t *root = json_object(), *moments = json_array(), *list = json_array(), *j, *values;
	size_t i;
	s64 v;
	int c, open;

	for (i = 0; i < n; i++) {
		values = json_object();
		for (c = 0; c < COST_MAX; c++)
			json_object_set_new(values, cost_columns[c].name,
					    value_of(all, i, c, &v, &open)
						    ? json_integer((json_int_t)v)
						    : json_null());
		j = json_pack("{s:I, s:o}", "time_ns", (json_int_t)all[i].time_ns, "values",
			      values);
		json_object_set_new(j, "picture_ns",
				    all[i].picture_ns ? json_integer((json_int_t)all[i].picture_ns)
						      : json_null());
		json_array_append_new(moments, j);
	}
	for (i = 0; i < r->nr_marks; i++) {
		j = json_pack("{s:I}", "time_ns", (json_int_t)r->marks[i].time_ns);
		json_object_set_new(j, "text", json_text(r->marks[i].text));
		json_array_append_new(list, j);
	}
	json_object_set_new(root, "schema", json_string("memprov-timeline/1"));
	json_object_set_new(root, "moments", moments);
	json_object_set_new(root, "marks", list);
	return root;
}

int out_timeline(FILE *f, const struct report *r, const struct moment *all, size_t n,
		 const struct out_opts *o, const char *format)
{
	json_t *root;
	int err;

	if (!strcmp(format, "csv"))
		return csv(f, all, n, o);
	if (strcmp(format, "json"))
		return table(f, r, all, n, o);
	root = out_timeline_json(r, all, n);
	err = json_dumpf(root, f, JSON_INDENT(1)) ? -EIO : 0;
	fputc('\n', f);
	json_decref(root);
	return err;
}
