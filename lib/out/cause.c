/* SPDX-License-Identifier: GPL-2.0-only
 * Why a flight recorder wrote its file: what happened, how old the picture is, and what grew. */
#include <jansson.h>
#include <stdlib.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

#define GREW_SHOWN 5

static const char *const kinds[MP_TRIGGER_MAX] = {
	[MP_TRIGGER_END] = "end", [MP_TRIGGER_SIGNAL] = "signal", [MP_TRIGGER_PSI] = "psi",
	[MP_TRIGGER_RSS] = "rss", [MP_TRIGGER_CGROUP] = "cgroup", [MP_TRIGGER_REFAULT] = "refault",
	[MP_TRIGGER_OOM] = "oom",
};

static const char *comm_of(const struct report *r, u32 pid)
{
	size_t i;

	for (i = 0; i < r->nr_targets; i++)
		if (r->targets[i].pid == pid && r->targets[i].comm)
			return r->targets[i].comm;
	return "?";
}

static void killed(FILE *f, const struct report *r, const struct out_opts *o)
{
	fputs("  ", f);
	text_put(f, comm_of(r, r->trigger.pid));
	fprintf(f, " (%u) was killed by the kernel for want of memory", r->trigger.pid);
	if (r->trigger.memcg) {
		fputs(":\n  cgroup ", f);
		text_put(f, r->trigger.memcg);
		fprintf(f, " was at its limit of %s", out_amount(o, (s64)r->trigger.limit));
	}
	if (r->has_walk)
		fprintf(f, "; the picture is %.1f s older",
			(double)r->trigger.picture_age_ns / 1e9);
	fputc('\n', f);
}

static void passed(FILE *f, const struct report *r, const struct out_opts *o)
{
	fputs("  written because of ", f);
	text_put(f, r->trigger.expr ? r->trigger.expr : "?");
	if (r->trigger.kind == MP_TRIGGER_RSS)
		fprintf(f, ": it was %s\n", out_amount(o, (s64)r->trigger.value));
	else
		fprintf(f, ": it was %llu\n", (unsigned long long)r->trigger.value);
}

/* In the pictures, and by what was faulted since the last one. */
static s64 growth(const struct row *row)
{
	const struct cost *c = &row->cost[COST_GROWN];

	return (c->known ? cost_value(c) : 0) + (s64)row->since;
}

static int by_growth(const void *a, const void *b)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;
	s64 s = growth(x), t = growth(y);

	return s > t ? -1 : s < t;
}

/* Those that grew, most of all first; to be freed. */
static const struct row **grown_rows(const struct report *r, size_t *ret_n)
{
	const struct row **rows = calloc(r->nr_rows ? r->nr_rows : 1, sizeof(*rows));
	size_t i;

	*ret_n = 0;
	for (i = 0; rows && i < r->nr_rows; i++)
		if (growth(&r->rows[i]) > 0)
			rows[(*ret_n)++] = &r->rows[i];
	if (*ret_n)
		qsort(rows, *ret_n, sizeof(*rows), by_growth);
	if (*ret_n > GREW_SHOWN)
		*ret_n = GREW_SHOWN;
	return rows;
}

static void grew(FILE *f, const struct report *r)
{
	const struct out_opts usual = {0};
	size_t i, n;
	const struct row **rows = grown_rows(r, &n);

	if (n)
		fprintf(f, "  grew most in %.1f s:\n", (double)r->duration_ns / 1e9);
	for (i = 0; i < n; i++) {
		fprintf(f, "  %13s  ", out_number(&usual, COST_GROWN, growth(rows[i])));
		if (rows[i]->since)
			fprintf(f, "(%s of it faulted since the picture) ",
				out_amount(&usual, (s64)rows[i]->since));
		out_owner(f, rows[i], 0);
	}
	free(rows);
}

static json_t *grew_json(const struct report *r)
{
	size_t i, n;
	const struct row **rows = grown_rows(r, &n);
	json_t *all = json_array(), *j;

	for (i = 0; i < n; i++) {
		j = json_pack("{s:s, s:I, s:I}", "id", rows[i]->id, "bytes",
			      (json_int_t)growth(rows[i]), "since_picture",
			      (json_int_t)rows[i]->since);
		json_object_set_new(j, "pid",
				    rows[i]->pid ? json_integer(rows[i]->pid) : json_null());
		json_array_append_new(all, j);
	}
	free(rows);
	return all;
}

void out_cause(FILE *f, const struct report *r, const struct out_opts *o)
{
	switch (r->trigger.kind) {
	case MP_TRIGGER_END:
		return;
	case MP_TRIGGER_SIGNAL:
		fputs("  written because somebody asked for it\n", f);
		break;
	case MP_TRIGGER_OOM:
		killed(f, r, o);
		break;
	default:
		passed(f, r, o);
	}
	grew(f, r);
}

json_t *out_cause_json(const struct report *r)
{
	json_t *j;

	if (r->trigger.kind == MP_TRIGGER_END)
		return json_null();
	j = json_pack("{s:s, s:I, s:I}", "kind", kinds[r->trigger.kind], "value",
		      (json_int_t)r->trigger.value, "picture_age_ns",
		      (json_int_t)r->trigger.picture_age_ns);
	json_object_set_new(j, "limit",
			    r->trigger.limit ? json_integer((json_int_t)r->trigger.limit)
					     : json_null());
	json_object_set_new(j, "grew", grew_json(r));
	json_object_set_new(j, "expression", json_text(r->trigger.expr));
	json_object_set_new(j, "cgroup", json_text(r->trigger.memcg));
	json_object_set_new(j, "pid", r->trigger.pid ? json_integer(r->trigger.pid) : json_null());
	json_object_set_new(j, "comm",
			    r->trigger.pid ? json_text(comm_of(r, r->trigger.pid)) : json_null());
	return j;
}
