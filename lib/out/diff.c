/* SPDX-License-Identifier: GPL-2.0-only
 * memprov-diff/1 and the same as text. */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include "lib/join/diff.h"
#include "lib/out/out.h"
#include "lib/text/text.h"

/* ---- JSON ---- */

/* Stocks are whole numbers; flows are per second. */
static json_t *number(int column, double v)
{
	if (cost_columns[column].kind == COST_STOCK)
		return json_integer((json_int_t)v);
	return json_real(v);
}

static json_t *value(int column, const struct diff_value *v)
{
	if (!v->known)
		return json_null();
	return json_pack("{s:o, s:o, s:o}", "value", number(column, diff_total(v)), "exact",
			 number(column, v->exact), "inferred", number(column, v->inferred));
}

static json_t *row_json(const struct diff *d, const struct diff_row *row)
{
	const struct row *r = row->row;
	json_t *origin = json_object(), *delta = json_null();

	json_object_set_new(origin, "kind", json_text(origin_kind_names[r->kind]));
	json_object_set_new(origin, "name", json_text(r->name));
	json_object_set_new(origin, "function", json_text(row_function(r)));
	json_object_set_new(origin, "stack", json_stack(r));
	if (row->known)
		delta = json_pack("{s:o, s:o, s:o}", "value", number(d->column, row->delta), "lo",
				  number(d->column, row->lo), "hi", number(d->column, row->hi));
	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:b}", "id", r->id, "match",
			 diff_match_names[row->match], "origin", origin, "base",
			 value(d->column, &row->base), "new", value(d->column, &row->next), "delta",
			 delta, "significant", row->significant);
}

static json_t *comparable(const struct diff *d)
{
	json_t *all = json_array(), *j;
	char buf[96];
	int c;

	for (c = 0; c < COST_MAX; c++) {
		diff_reason(d, c, buf, sizeof(buf));
		j = json_pack("{s:s, s:b}", "column", cost_columns[c].name, "ok", !buf[0]);
		json_object_set_new(j, "reason", json_text(buf[0] ? buf : NULL));
		json_array_append_new(all, j);
	}
	return all;
}

static void rules_json(const struct diff *d, json_t *failed, json_t *undecided)
{
	size_t i;

	for (i = 0; i < d->nr_rules; i++) {
		const struct diff_rule *r = &d->rules[i];
		json_t *j = json_object();

		json_object_set_new(j, "rule", json_text(r->text));
		if (r->verdict == DIFF_FAILED) {
			json_object_set_new(j, "row",
					    r->site_len ? json_stringn(r->text, r->site_len)
							: json_null());
			json_object_set_new(j, "base", value(r->column, &r->base));
			json_object_set_new(j, "new", value(r->column, &r->next));
			json_array_append(failed, j);
		} else if (r->verdict == DIFF_UNDECIDED) {
			json_object_set_new(j, "reason", json_text(r->reason));
			json_array_append(undecided, j);
		}
		json_decref(j);
	}
}

static json_t *side_json(const struct report *r)
{
	json_t *j = json_object(), *targets = json_array(), *t;
	size_t i;

	json_object_set_new(j, "host", json_text(r->host));
	json_object_set_new(j, "kernel", json_text(r->kernel));
	json_object_set_new(j, "start", json_integer((json_int_t)r->start_realtime));
	json_object_set_new(j, "duration_ns", json_integer((json_int_t)r->duration_ns));
	json_object_set_new(j, "lost", json_integer((json_int_t)r->lost));
	for (i = 0; i < r->nr_targets; i++) {
		t = json_pack("{s:i}", "pid", (int)r->targets[i].pid);
		json_object_set_new(t, "comm", json_text(r->targets[i].comm));
		json_array_append_new(targets, t);
	}
	json_object_set_new(j, "targets", targets);
	return j;
}

int out_diff_json(FILE *f, const struct diff *d)
{
	json_t *root = json_object(), *rows = json_array();
	json_t *failed = json_array(), *undecided = json_array();
	size_t i;
	int err;

	for (i = 0; i < d->nr_rows; i++)
		json_array_append_new(rows, row_json(d, &d->rows[i]));
	rules_json(d, failed, undecided);
	json_object_set_new(root, "schema", json_string("memprov-diff/1"));
	json_object_set_new(root, "by", json_string(cost_columns[d->column].name));
	json_object_set_new(root, "base", side_json(d->base));
	json_object_set_new(root, "new", side_json(d->next));
	json_object_set_new(root, "owners", json_text(diff_owners(d)));
	json_object_set_new(root, "rows", rows);
	json_object_set_new(root, "comparable", comparable(d));
	json_object_set_new(root, "failed", failed);
	json_object_set_new(root, "undecided", undecided);
	err = json_dumpf(root, f, JSON_INDENT(1)) ? -EIO : 0;
	fputc('\n', f);
	json_decref(root);
	return err;
}

/* ---- text ---- */

const char *diff_amount(char *buf, size_t len, int column, int known, double v, int sign)
{
	static const char *const suffix[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	const struct cost_column *c = &cost_columns[column];
	const char *plus = sign && v > 0 ? "+" : "", *unit = "", *per = "";
	int whole = c->kind == COST_STOCK && strcmp(c->unit, "ns") != 0; /* a count */
	int i = 0;

	if (c->kind == COST_FLOW)
		per = "/s";
	if (!strcmp(c->unit, "ns")) {
		v /= 1e6;
		unit = " ms";
	} else if (!strcmp(c->unit, "B")) {
		for (; (v >= 1024 || v <= -1024) && i < 4; i++)
			v /= 1024;
		unit = suffix[i];
	}
	if (!known)
		snprintf(buf, len, "-");
	else if (!strcmp(c->unit, "B"))
		snprintf(buf, len, "%s%.*f %s%s", plus, i ? 2 : 0, v, unit, per);
	else
		snprintf(buf, len, "%s%.*f%s%s", plus, whole ? 0 : 2, v, unit, per);
	return buf;
}

void out_side(FILE *f, const struct report *r)
{
	text_put(f, r->host);
	fputs(", ", f);
	out_targets(f, r, 1);
	fputs(", Linux ", f);
	text_put(f, r->kernel);
}

static void cell(FILE *f, int column, int known, double v, int sign)
{
	char buf[48];

	fprintf(f, "%16s", diff_amount(buf, sizeof(buf), column, known, v, sign));
}

static void row_text(FILE *f, const struct diff *d, const struct diff_row *row)
{
	cell(f, d->column, row->known, row->delta, 1);
	fputc(row->known && !row->significant ? '?' : ' ', f);
	cell(f, d->column, row->base.known, diff_total(&row->base), 0);
	cell(f, d->column, row->next.known, diff_total(&row->next), 0);
	fprintf(f, "  %-8s  ", diff_match_names[row->match]);
	out_owner(f, row->row, 0);
}

static void total_text(FILE *f, const struct diff *d)
{
	struct diff_value b = diff_sum(d->base, d->column), n = diff_sum(d->next, d->column);

	cell(f, d->column, b.known && n.known, diff_total(&n) - diff_total(&b), 1);
	fputc(' ', f);
	cell(f, d->column, b.known, diff_total(&b), 0);
	cell(f, d->column, n.known, diff_total(&n), 0);
	fputs("            total\n", f);
}

static void rules_text(FILE *f, const struct diff *d)
{
	size_t i;

	for (i = 0; i < d->nr_rules; i++) {
		const struct diff_rule *r = &d->rules[i];

		if (r->verdict == DIFF_UNDECIDED) {
			fprintf(f, "undecided: %s: %s\n", r->text, r->reason);
			continue;
		}
		fprintf(f, "%s: %s:", r->verdict == DIFF_FAILED ? "failed" : "passed", r->text);
		cell(f, r->column, 1, diff_total(&r->base), 0);
		fputs(" to", f);
		cell(f, r->column, 1, diff_total(&r->next), 0);
		fputc('\n', f);
	}
}

static void side_text(FILE *f, const char *which, const struct report *r)
{
	fputs(which, f);
	out_side(f, r);
	fputc('\n', f);
}

int out_diff_table(FILE *f, const struct diff *d, unsigned int rows)
{
	size_t i, n = rows && rows < d->nr_rows ? rows : d->nr_rows;
	char buf[96];

	fprintf(f, "%s%s\n", cost_columns[d->column].name,
		cost_columns[d->column].kind == COST_FLOW ? ", per second of each recording" : "");
	side_text(f, "  base: ", d->base);
	side_text(f, "  new:  ", d->next);
	if (diff_owners(d))
		fprintf(f, "  owners differ by how they were told: %s; totals compare\n",
			diff_owners(d));
	if (*diff_reason(d, d->column, buf, sizeof(buf)))
		fprintf(f, "  not comparable: %s\n", buf);
	fprintf(f, "%16s %16s%16s  %-8s  %s\n", "DELTA", "BASE", "NEW", "MATCH", "OWNER");
	total_text(f, d);
	for (i = 0; i < n; i++)
		row_text(f, d, &d->rows[i]);
	if (n < d->nr_rows)
		fprintf(f, "  ... %zu more rows; --format json shows all\n", d->nr_rows - n);
	if (n)
		fputs("  ? the bounds allow no change, - no evidence\n", f);
	rules_text(f, d);
	return 0;
}
