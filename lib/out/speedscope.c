/* SPDX-License-Identifier: GPL-2.0-only
 * speedscope's file format: one profile for each column that adds up, over one list of frames. */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include "lib/out/intern.h"
#include "lib/out/out.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

struct frames {
	struct intern text, known;
	json_t *list; /* in the order of known */
	json_t *stack; /* of the row at hand */
};

static int step(void *ctx, const char *name, const struct frame *frame)
{
	const char *file = frame && frame->file ? frame->file : "";
	struct frames *all = ctx;
	u32 before = all->known.n;
	s64 key[3] = {intern_text(&all->text, name), intern_text(&all->text, file),
		      frame ? frame->line : 0};
	s64 n = key[0] < 0 || key[1] < 0 ? -ENOMEM : intern(&all->known, key, sizeof(key));
	json_t *j;

	if (n < 0)
		return (int)n;
	json_array_append_new(all->stack, json_integer(n));
	if (all->known.n == before)
		return 0;
	j = json_object();
	json_object_set_new(j, "name", json_text(name));
	if (*file)
		json_object_set_new(j, "file", json_text(file));
	if (frame && frame->line)
		json_object_set_new(j, "line", json_integer(frame->line));
	json_array_append_new(all->list, j);
	return 0;
}

/* stacks: of all rows. */
static json_t *profile(const struct report *r, json_t *stacks, int column)
{
	const char *unit = cost_columns[column].unit;
	json_t *samples = json_array(), *weights = json_array();
	s64 sum = 0, v;
	size_t i;

	for (i = 0; i < r->nr_rows; i++) {
		v = cost_value(&r->rows[i].cost[column]);
		if (!r->rows[i].cost[column].known || v <= 0)
			continue;
		sum += v;
		json_array_append(samples, json_array_get(stacks, i));
		json_array_append_new(weights, json_integer(v));
	}
	return json_pack("{s:s, s:s, s:s, s:i, s:I, s:o, s:o}", "type", "sampled", "name",
			 cost_columns[column].name, "unit",
			 !strcmp(unit, "B")    ? "bytes"
			 : !strcmp(unit, "ns") ? "nanoseconds"
					       : "none",
			 "startValue", 0, "endValue", (json_int_t)sum, "samples", samples,
			 "weights", weights);
}

static json_t *document(const struct report *r, const struct out_opts *o, struct frames *all,
			json_t *stacks)
{
	json_t *profiles = json_array(), *root = json_object();
	size_t active = 0;
	int c;

	for (c = 0; c < COST_MAX; c++) {
		if (!cost_columns[c].additive || !out_has(r, c))
			continue;
		if (c == o->column)
			active = json_array_size(profiles);
		json_array_append_new(profiles, profile(r, stacks, c));
	}
	json_object_set_new(root, "$schema", json_string(SCHEMA));
	json_object_set_new(root, "exporter", json_string("memprov " MEMPROV_VERSION));
	json_object_set_new(root, "name", json_text(r->host));
	json_object_set_new(root, "activeProfileIndex", json_integer((json_int_t)active));
	json_object_set_new(root, "shared", json_pack("{s:O}", "frames", all->list));
	json_object_set_new(root, "profiles", profiles);
	return root;
}

int out_speedscope(FILE *f, const struct report *r, const struct out_opts *o)
{
	struct frames all = {.list = json_array()};
	json_t *stacks = json_array(), *root = NULL;
	int err = 0, many = join_is_many(r);
	size_t i;

	for (i = 0; i < r->nr_rows && !err; i++) {
		all.stack = json_array();
		err = out_path(&r->rows[i], many, step, &all);
		json_array_append_new(stacks, all.stack);
	}
	if (!err) {
		root = document(r, o, &all, stacks);
		err = json_array_size(json_object_get(root, "profiles")) ? 0 : -ENODATA;
	}
	if (!err)
		err = json_dumpf(root, f, JSON_COMPACT) ? -EIO : 0;
	json_decref(root);
	json_decref(stacks);
	json_decref(all.list);
	intern_free(&all.text);
	intern_free(&all.known);
	return err;
}
