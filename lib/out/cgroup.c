/* SPDX-License-Identifier: GPL-2.0-only
 * The recorded cgroup: its lines of the contract screen and its part of the JSON. What was not read
 * is - and null; no limit is "unlimited", in both. */
#include <string.h>
#include <jansson.h>
#include "lib/join/memcg.h"
#include "lib/out/out.h"
#include "lib/text/text.h"

/* ---- text ---- */

static const char *size_of(const struct report *r, const struct out_opts *o, const char *name)
{
	const struct memcg_figure *v = memcg_find(r->memcg, NULL, name, memcg_latest(r->memcg));

	if (!v)
		return "-";
	return v->state == MP_STAT_UNLIMITED ? "unlimited" : out_amount(o, (s64)v->value);
}

/* A counter and what it rose by while recording. */
static void count(FILE *f, const struct report *r, const char *title, const char *name, int *n)
{
	const struct memcg_figure *a = memcg_find(r->memcg, NULL, name, MP_CGROUP_START);
	const struct memcg_figure *b = memcg_find(r->memcg, NULL, name, memcg_latest(r->memcg));

	if (!b)
		return;
	fprintf(f, "%s%s %llu", (*n)++ ? ", " : "\n    ", title, (unsigned long long)b->value);
	if (a && b->value > a->value)
		fprintf(f, " (+%llu)", (unsigned long long)(b->value - a->value));
}

/* Share of the recording's time that somebody, or everybody, waited for memory. */
static void pressure(FILE *f, const struct report *r, const char *title, const char *name, int *n)
{
	const struct memcg_figure *a = memcg_find(r->memcg, NULL, name, MP_CGROUP_START);
	const struct memcg_figure *b = memcg_find(r->memcg, NULL, name, memcg_latest(r->memcg));

	if (!a || !b || b->value < a->value || !r->duration_ns)
		return;
	fprintf(f, "%sPSI %s %.1f%%", (*n)++ ? ", " : "\n    ", title,
		(double)(b->value - a->value) * 1e5 / (double)r->duration_ns);
}

static s64 class_sum(const struct report *r, int memcg)
{
	s64 sum = 0;
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].cost[COST_CHARGED].known &&
		    (r->rows[i].kind == ORIGIN_MEMCG) == memcg)
			sum += cost_value(&r->rows[i].cost[COST_CHARGED]);
	return sum;
}

void out_cgroup(FILE *f, const struct report *r, const struct out_opts *o)
{
	const struct check *c = &r->check[COST_CHARGED];
	int n = 0;

	fputs("  cgroup ", f);
	text_put(f, r->memcg->path);
	fprintf(f, " (v%u, %u %s): charged %s of limit %s, high %s, swap %s\n   ",
		r->memcg->version, r->memcg->groups, r->memcg->groups == 1 ? "group" : "groups",
		size_of(r, o, "current"), size_of(r, o, "limit"), size_of(r, o, "high"),
		size_of(r, o, "swap"));
	count(f, r, "limit hits", "limit_hits", &n);
	count(f, r, "ooms", "oom", &n);
	count(f, r, "oom kills", "oom_kill", &n);
	pressure(f, r, "some", "psi_some", &n);
	pressure(f, r, "full", "psi_full", &n);
	if (memcg_latest(r->memcg) == MP_CGROUP_START)
		fputs("; as it was at the start", f);
	fputc('\n', f);
	if (c->status == CHECK_UNJUDGED) {
		fprintf(f, "    its rows are not judged: %s\n", c->reason);
		return;
	}
	fprintf(f, "    = mapped by its processes %s + else (kind memcg) %s\n    kernel ",
		out_amount(o, class_sum(r, 0)), out_amount(o, class_sum(r, 1)));
	if (c->kernel_before != c->kernel)
		fprintf(f, "%s to ", out_amount(o, (s64)c->kernel_before));
	fprintf(f, "%s, residual %s, tolerance %s:\n      %s\n", out_amount(o, (s64)c->kernel),
		out_amount(o, c->residual), out_amount(o, (s64)c->tolerance), c->reason);
}

/* ---- JSON ---- */

static json_t *figure_json(const struct memcg_figure *f)
{
	return f->state == MP_STAT_UNLIMITED ? json_string("unlimited")
					     : json_integer((json_int_t)f->value);
}

static json_t *reading(const struct memcg *m, u32 when)
{
	static const char *const always[] = {"current",	 "limit",      "high",
					     "swap",	 "limit_hits", "oom",
					     "oom_kill", "psi_some",   "psi_full"};
	json_t *j, *stat, *pages;
	size_t i;

	if (!m->read[when])
		return json_null();
	j = json_object();
	stat = json_object();
	pages = json_object();
	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++) {
		const struct memcg_figure *f = memcg_find(m, NULL, always[i], when);

		json_object_set_new(j, always[i], f ? figure_json(f) : json_null());
	}
	for (i = 0; i < m->n; i++) {
		const struct memcg_figure *f = &m->figures[i];
		json_t *to = !strcmp(f->source, MEMCG_STAT)    ? stat
			     : !strcmp(f->source, MEMCG_PAGES) ? pages
							       : j;

		if (f->when == when)
			json_object_set_new(to, f->name, figure_json(f));
	}
	json_object_set_new(j, "stat", stat);
	json_object_set_new(j, "pages", pages);
	return j;
}

/* recording.cgroups[]: at most one today. */
struct json_t *out_cgroups_json(const struct report *r)
{
	const struct memcg *m = r->memcg;
	json_t *all = json_array(), *j;

	if (!m)
		return all;
	j = json_object();
	json_object_set_new(j, "path", json_text(m->path));
	json_object_set_new(j, "version", json_integer(m->version));
	json_object_set_new(j, "groups", json_integer(m->groups));
	json_object_set_new(j, "start", reading(m, MP_CGROUP_START));
	json_object_set_new(j, "before", reading(m, MP_CGROUP_BEFORE));
	json_object_set_new(j, "end",
			    reading(m, m->read[MP_CGROUP_AFTER] ? MP_CGROUP_AFTER : MP_CGROUP_NOW));
	json_array_append_new(all, j);
	return all;
}
