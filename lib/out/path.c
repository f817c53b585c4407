/* SPDX-License-Identifier: GPL-2.0-only
 * What formats have in common: names, stacks, grades, and which formats there are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

const struct out_format out_formats[] = {
	/* clang-format off */
	{"table", out_table, 0, 0},
	{"folded", out_folded, 1, 0},
	{"json", out_json, 0, 0},
	{"csv", out_csv, 0, 0},
	{"pprof", out_pprof, 0, 1},
	{"speedscope", out_speedscope, 0, 0},
	{"html", out_html, 0, 0},
	{NULL, NULL, 0, 0},
	/* clang-format on */
};

const struct out_format *out_format_find(const char *name)
{
	const struct out_format *f;

	for (f = out_formats; f->name && strcmp(f->name, name); f++)
		;
	return f->name ? f : NULL;
}

int out_has(const struct report *r, int column)
{
	size_t i;

	if (cost_absent(r, (enum cost_id)column))
		return 0;
	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].cost[column].known)
			return 1;
	return 0;
}

const char *out_grade(const struct cost *c)
{
	return c->sampled ? "sampled" : cost_is_open(c) ? "inferred" : "exact";
}

/* Whatever a target called its files and functions. */
static int step_plain(out_step step, void *ctx, const char *name, const struct frame *frame)
{
	char *plain = text_clean(name);
	int err = plain ? step(ctx, plain, frame) : -ENOMEM;

	free(plain);
	return err;
}

int out_path(const struct row *row, int many, out_step step, void *ctx)
{
	const char *who = row->several ? "[several]" : row->comm ? row->comm : "?";
	char label[FRAME_LABEL];
	int err;
	u32 i;

	if (many && row->pid)
		snprintf(label, sizeof(label), "%s-%u", who, row->pid);
	else
		snprintf(label, sizeof(label), "%s", who);
	err = row->host ? step_plain(step, ctx, row->host, NULL) : 0;
	if (!err)
		err = step_plain(step, ctx, label, NULL);
	if (row->name || !row->nr_frames) {
		snprintf(label, sizeof(label), "[%s]", origin_kind_names[row->kind]);
		if (!err)
			err = step_plain(step, ctx, label, NULL);
		return err ? err : step_plain(step, ctx, row->name, NULL);
	}
	for (i = row->nr_frames; i-- && !err;)
		err = step_plain(step, ctx, frame_label(&row->frames[i], label, sizeof(label)),
				 &row->frames[i]);
	return err;
}
