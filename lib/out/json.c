/* SPDX-License-Identifier: GPL-2.0-only
 * memprov-report/1. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <jansson.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

json_t *json_text(const char *s)
{
	json_t *j = s ? json_string(s) : json_null();

	/* A path need not be UTF-8; JSON must be, and escapes control characters itself. */
	if (!j) {
		char *clean = text_clean(s);

		j = clean ? json_string(clean) : NULL;
		free(clean);
	}
	return j;
}

static json_t *value(const struct cost *c)
{
	json_t *j;

	if (!c->known)
		return json_null();
	j = json_pack("{s:I}", "value", (json_int_t)cost_value(c));
	if (c->exact)
		json_object_set_new(j, "exact", json_integer(c->exact));
	if (c->inferred)
		json_object_set_new(j, "inferred", json_integer(c->inferred));
	if (c->sampled)
		json_object_set_new(j, "sampled", json_integer(c->sampled));
	if (c->n)
		json_object_set_new(j, "n", json_integer(c->n));
	if (cost_is_open(c)) {
		json_object_set_new(j, "lo", json_integer(cost_lo(c)));
		json_object_set_new(j, "hi", json_integer(cost_hi(c)));
	}
	return j;
}

static json_t *columns(const struct report *r)
{
	json_t *all = json_object();
	int i;

	for (i = 0; i < COST_MAX; i++) {
		const char *absent = cost_absent(r, (enum cost_id)i);
		int have;

		if (!absent && !r->has_walk && cost_columns[i].kind == COST_STOCK)
			absent = "no picture was taken";
		have = !absent;

		json_object_set_new(
			all, cost_columns[i].name,
			json_pack("{s:s, s:s, s:b, s:b, s:o, s:s}", "unit", cost_columns[i].unit,
				  "kind", cost_columns[i].kind == COST_STOCK ? "stock" : "flow",
				  "additive", cost_columns[i].additive, "available", have, "reason",
				  json_text(absent), "doc", cost_columns[i].doc));
	}
	return all;
}

/* kernel 0: it was not read. What was not judged has no sums to compare. */
static json_t *check(const struct check *c)
{
	int judged = c->judged && c->status != CHECK_UNJUDGED;
	json_t *j = json_object();

#define SET(name, known, value) \
	json_object_set_new(j, name, known ? json_integer((json_int_t)(value)) : json_null())
	SET("kernel", judged || c->kernel, c->kernel);
	SET("kernel_before", judged, c->kernel_before);
	SET("attributed", judged, c->attributed);
	SET("unattributed", judged, c->unattributed);
	SET("residual", judged, c->residual);
	SET("tolerance", judged, c->tolerance);
#undef SET
	json_object_set_new(j, "scope", json_string(c->scope ? c->scope : "space"));
	json_object_set_new(j, "status", json_string(check_status_names[c->status]));
	json_object_set_new(j, "reason", json_string(c->reason ? c->reason : ""));
	return j;
}

static json_t *checks(const struct report *r)
{
	json_t *all = json_object();
	int i;

	for (i = 0; i < COST_MAX; i++)
		if (r->check[i].judged || r->check[i].status == CHECK_UNJUDGED)
			json_object_set_new(all, cost_columns[i].name, check(&r->check[i]));
	return all;
}

/* As wait(2) gives it; null: not seen. */
static json_t *target_end(int status)
{
	if (status < 0)
		return json_null();
	if (WIFSIGNALED(status))
		return json_pack("{s:i}", "signal", WTERMSIG(status));
	return json_pack("{s:i}", "status", WEXITSTATUS(status));
}

static json_t *recording(const struct report *r)
{
	json_t *targets = json_array(), *hooks = json_array(), *causes = json_object(), *j;
	json_t *marks = json_array();
	size_t i;

	for (i = 0; i < r->nr_targets; i++) {
		j = json_pack("{s:i}", "pid", (int)r->targets[i].pid);
		json_object_set_new(j, "comm", json_text(r->targets[i].comm));
		json_object_set_new(j, "end", target_end((int)r->targets[i].status - 1));
		json_array_append_new(targets, j);
	}
	for (i = 0; i < r->nr_hooks; i++) {
		j = json_object();
		json_object_set_new(j, "capability", json_text(r->hooks[i].capability));
		json_object_set_new(j, "provider", json_text(r->hooks[i].provider));
		json_object_set_new(j, "stability", json_text(r->hooks[i].stability));
		json_object_set_new(j, "reason", json_text(r->hooks[i].reason));
		json_array_append_new(hooks, j);
	}
	for (i = 0; i < r->nr_marks; i++) {
		j = json_pack("{s:I}", "time_ns", (json_int_t)r->marks[i].time_ns);
		json_object_set_new(j, "text", json_text(r->marks[i].text));
		json_array_append_new(marks, j);
	}
	for (i = 0; i < MP_LOSS_MAX; i++)
		if (r->losses[i].count)
			json_object_set_new(causes, r->losses[i].name,
					    json_integer((json_int_t)r->losses[i].count));
	j = json_object();
	json_object_set_new(j, "host", json_text(r->host));
	json_object_set_new(j, "kernel", json_text(r->kernel));
	json_object_set_new(j, "arch", json_text(r->arch));
	json_object_set_new(j, "start", json_integer((json_int_t)r->start_realtime));
	json_object_set_new(j, "duration_ns", json_integer((json_int_t)r->duration_ns));
	json_object_set_new(j, "at_ns",
			    r->at_ns ? json_integer((json_int_t)r->at_ns) : json_null());
	json_object_set_new(j, "complete", json_boolean(report_complete(r)));
	json_object_set_new(j, "truncated", json_boolean(r->truncated));
	json_object_set_new(j, "targets", targets);
	json_object_set_new(j, "hooks", hooks);
	json_object_set_new(j, "marks", marks);
	json_object_set_new(j, "access", out_access_json(r));
	json_object_set_new(j, "trigger", out_cause_json(r));
	json_object_set_new(j, "samples", out_samples_json(r));
	json_object_set_new(j, "cgroups", out_cgroups_json(r));
	json_object_set_new(j, "stacks",
			    json_pack("{s:I, s:I, s:I, s:I, s:I}", "total", (json_int_t)r->stacks,
				      "deep", (json_int_t)r->stacks_deep, "cut",
				      (json_int_t)r->stacks_cut, "frames", (json_int_t)r->frames,
				      "unknown_frames", (json_int_t)r->unknown_frames));
	json_object_set_new(j, "loss",
			    json_pack("{s:I, s:o, s:[]}", "total", (json_int_t)r->lost, "causes",
				      causes, "windows"));
	return j;
}

json_t *json_stack(const struct row *row)
{
	json_t *stack = json_array(), *j;
	char addr[24];
	u32 i;

	for (i = 0; i < row->nr_frames; i++) {
		const struct frame *f = &row->frames[i];

		snprintf(addr, sizeof(addr), "0x%llx", (unsigned long long)f->addr);
		j = json_object();
		json_object_set_new(j, "function", json_text(f->function));
		json_object_set_new(j, "module", json_text(f->module));
		json_object_set_new(j, "file", json_text(f->file));
		json_object_set_new(j, "line",
				    f->line ? json_integer((json_int_t)f->line) : json_null());
		json_object_set_new(j, "address", json_text(addr));
		json_object_set_new(j, "inlined", json_boolean(f->inlined));
		json_array_append_new(stack, j);
	}
	return stack;
}

static json_t *row_json(const struct row *row)
{
	json_t *costs = json_object(), *origin;
	char addr[24];
	int c;

	for (c = 0; c < COST_MAX; c++)
		json_object_set_new(costs, cost_columns[c].name, value(&row->cost[c]));
	if (row->multi && row->cost[COST_RESIDENT].known)
		json_object_set_new(json_object_get(costs, "resident"), "multi",
				    json_integer((json_int_t)row->multi));
	origin = json_object();
	json_object_set_new(origin, "kind", json_text(origin_kind_names[row->kind]));
	json_object_set_new(origin, "name", json_text(row->name));
	json_object_set_new(origin, "resource", json_text(row->resource));
	json_object_set_new(origin, "evidence", json_text(row->evidence));
	json_object_set_new(origin, "pid",
			    row->pid ? json_integer((json_int_t)row->pid) : json_null());
	json_object_set_new(origin, "comm", json_text(row->comm));
	if (row->host)
		json_object_set_new(origin, "host", json_text(row->host));
	if (row->ino) {
		snprintf(addr, sizeof(addr), "%u:%u", row->dev >> 20, row->dev & 0xfffff);
		json_object_set_new(origin, "device", json_text(addr));
		snprintf(addr, sizeof(addr), "%llu", (unsigned long long)row->ino);
		json_object_set_new(origin, "inode", json_text(addr));
	}
	json_object_set_new(origin, "generations", json_integer((json_int_t)row->generations));
	json_object_set_new(origin, "stack", json_stack(row));
	json_object_set_new(origin, "unwound_by", json_text(row_unwound_by(row)));
	json_object_set_new(origin, "unwound_end", json_text(row_unwound_end(row)));
	return json_pack("{s:s, s:o, s:o}", "id", row->id, "origin", origin, "costs", costs);
}

/* Each with its own sums compared: of several there is no kernel's figure. */
static json_t *recordings(const struct report *r)
{
	json_t *all = json_array(), *j;
	size_t i;

	for (i = 0; i < (r->nr_parts ? r->nr_parts : 1); i++) {
		const struct report *part = r->nr_parts ? r->parts[i] : r;

		j = recording(part);
		json_object_set_new(j, "check", checks(part));
		json_array_append_new(all, j);
	}
	return all;
}

int out_json(FILE *f, const struct report *r, const struct out_opts *o)
{
	json_t *root = json_object(), *rows = json_array(), *totals = json_object(),
	       *classes = json_object();
	size_t i;
	int c, err;

	for (c = 0; c < COST_MAX; c++)
		json_object_set_new(totals, cost_columns[c].name, value(&r->total[c]));
	for (c = 0; c < CLASS_MAX; c++)
		json_object_set_new(classes, mem_class_names[c], value(&r->classes[c]));
	for (i = 0; i < r->nr_rows && !(o->rows && i == o->rows); i++)
		json_array_append_new(rows, row_json(&r->rows[i]));
	json_object_set_new(root, "schema", json_string("memprov-report/1"));
	json_object_set_new(root, "query",
			    json_pack("{s:s, s:s, s:s?, s:s?, s:I}", "by",
				      cost_columns[o->column].name, "group", o->group, "filter",
				      o->filter, "evidence", o->evidence, "rows",
				      (json_int_t)o->rows));
	json_object_set_new(root, "columns", columns(r));
	json_object_set_new(root, "recording", recording(r->nr_parts ? r->parts[0] : r));
	json_object_set_new(root, "recordings", recordings(r));
	json_object_set_new(root, "check", checks(r));
	json_object_set_new(root, "totals", totals);
	json_object_set_new(root, "classes", classes);
	json_object_set_new(root, "rows_total", json_integer((json_int_t)r->nr_rows));
	json_object_set_new(root, "rows", rows);
	err = json_dumpf(root, f, JSON_INDENT(1)) ? -EIO : 0;
	fputc('\n', f);
	json_decref(root);
	return err;
}
