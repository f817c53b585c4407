/* SPDX-License-Identifier: GPL-2.0-only
 * Several recordings as one report: rows keep apart by host, sums are over all. Each recording
 * stays beside it for what is said of it alone. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/join.h"

const char *report_text(struct report *r, const char *fmt, ...)
{
	char **texts = realloc(r->texts, (r->nr_texts + 1) * sizeof(*texts)), *text = NULL;
	va_list ap;
	int n;

	if (!texts)
		return NULL;
	r->texts = texts;
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	return r->texts[r->nr_texts++] = text;
}

/* Its host; of several of one host with the file; a file that is named again with its place. */
static const char *label_of(struct report *r, size_t at, const char *const *paths)
{
	const char *host = r->parts[at]->host ? r->parts[at]->host : "?";
	size_t i, same = 0, again = 0;

	for (i = 0; i < r->nr_parts; i++) {
		same += r->parts[i]->host && !strcmp(r->parts[i]->host, host);
		again += i != at && !strcmp(paths[i], paths[at]);
	}
	if (again)
		return report_text(r, "%s:%s#%zu", host, paths[at], at + 1);
	return same > 1 ? report_text(r, "%s:%s", host, paths[at]) : host;
}

static int add_rows(struct report *r, const struct report *part, const char *host)
{
	struct row *rows = realloc(r->rows, (r->nr_rows + part->nr_rows + 1) * sizeof(*rows));
	size_t i;

	if (!rows)
		return -ENOMEM;
	r->rows = rows;
	for (i = 0; i < part->nr_rows; i++) {
		struct row *row = &r->rows[r->nr_rows];
		size_t size = part->rows[i].nr_frames * sizeof(*row->frames);

		*row = part->rows[i];
		row->host = host;
		row->frames = size ? malloc(size) : NULL;
		if (size && !row->frames)
			return -ENOMEM;
		if (size)
			memcpy(row->frames, part->rows[i].frames, size);
		r->nr_rows++;
	}
	return 0;
}

/* What a part does not know is not 0: then the sum is not known either. */
static void add_cost(struct cost *into, const struct cost *c, int first)
{
	int known = c->known && (first || into->known);

	into->exact += c->exact;
	into->inferred += c->inferred;
	into->sampled += c->sampled;
	into->sure += c->sure;
	into->counted += c->counted;
	into->hi += cost_hi(c);
	into->open |= c->open;
	into->known = (u8)known;
}

static void add_sums(struct report *r, const struct report *part, int first)
{
	size_t i;

	for (i = 0; i < COST_MAX; i++)
		add_cost(&r->total[i], &part->total[i], first);
	for (i = 0; i < CLASS_MAX; i++)
		add_cost(&r->classes[i], &part->classes[i], first);
	for (i = 0; i < MP_LOSS_MAX; i++) {
		if (part->losses[i].name) {
			r->losses[i].name = part->losses[i].name;
			r->losses[i].doc = part->losses[i].doc;
		}
		r->losses[i].count += part->losses[i].count;
	}
	r->lost += part->lost;
	r->truncated |= part->truncated;
	r->has_walk = part->has_walk && (first || r->has_walk);
	if (part->duration_ns > r->duration_ns)
		r->duration_ns = part->duration_ns;
	if (first || part->start_realtime < r->start_realtime)
		r->start_realtime = part->start_realtime;
	if (part->end < 0 || first)
		r->end = part->end;
	r->no_map = r->no_map ? r->no_map : part->no_map;
	r->no_fault = r->no_fault ? r->no_fault : part->no_fault;
	r->no_alloc = r->no_alloc ? r->no_alloc : part->no_alloc;
	r->no_growth = r->no_growth ? r->no_growth : part->no_growth;
	r->no_frames |= part->no_frames;
	r->no_nodes |= part->no_nodes;
	r->some_resources |= part->some_resources;
}

int join_merge(struct report **parts, size_t nr, const char *const *paths, struct report **ret_r)
{
	struct report *r = calloc(1, sizeof(*r));
	struct report **own = calloc(nr, sizeof(*own));
	size_t i;
	int err = r && own ? 0 : -ENOMEM;

	if (err) {
		for (i = 0; i < nr; i++)
			join_free(&parts[i]);
		free(own);
		free(r);
		return err;
	}
	for (i = 0; i < nr; i++) {
		own[i] = parts[i];
		parts[i] = NULL;
	}
	r->parts = own;
	r->nr_parts = nr;
	for (i = 0; i < nr && !err; i++) {
		const char *label = label_of(r, i, paths);

		own[i]->label = label;
		err = label ? add_rows(r, own[i], label) : -ENOMEM;
		add_sums(r, own[i], !i);
	}
	if (err)
		join_free(&r);
	else
		*ret_r = r;
	return err;
}
