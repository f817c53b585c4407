/* SPDX-License-Identifier: GPL-2.0-only
 * Rows that look alike become one; their order. What the program itself called is told from the
 * plumbing between it and the kernel here, for groups and for diff alike. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/estimate.h"
#include "lib/join/replay.h"

u64 hash_text(u64 h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return (h ^ 0xff) * 0x100000001b3ull;
}

/* ---- whose frame ---- */

int frame_is_plumbing(const struct frame *f)
{
	/* How the files of C libraries, loaders, allocators and C++ runtimes begin. */
	static const char *const files[] = {
		"libc.so",     "libc-2.",     "libpthread", "ld-linux",	 "ld-2.",
		"ld64.so",     "ld.so",	      "ld-musl",    "libc.musl", "libjemalloc",
		"libtcmalloc", "libmimalloc", "libmemprov", "libstdc++", "libc++",
	};
	const char *name = f->module ? strrchr(f->module, '/') : NULL;
	size_t i;

	if (!f->module)
		return 0;
	name = name ? name + 1 : f->module;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!strncmp(name, files[i], strlen(files[i])))
			return 1;
	return 0;
}

/* The code that runs an interpreter's functions tells nothing beside them. */
int row_passes_over(const struct row *row, const struct frame *f)
{
	const char *name = f->module ? strrchr(f->module, '/') : NULL;

	if (frame_is_plumbing(f))
		return 1;
	return row->interpreted && !f->runtime && name &&
	       (!strncmp(name, "/python3", 8) || !strncmp(name, "/libpython3", 11));
}

int frame_is_made(const struct frame *f)
{
	return f->module && !strcmp(f->module, "[jit]");
}

u32 row_program_frames(const struct row *row)
{
	u32 i = 0;

	while (i < row->nr_frames && row_passes_over(row, &row->frames[i]))
		i++;
	return i < row->nr_frames ? i : 0;
}

const char *frame_label(const struct frame *f, char *buf, size_t len)
{
	const char *name = f->module ? strrchr(f->module, '/') : NULL;

	if (f->function)
		return f->function;
	name = name ? name + 1 : f->module ? f->module : "unknown";
	snprintf(buf, len, *name == '[' ? "%s" : "[%s]", name);
	return buf;
}

const struct frame *row_own_frame(const struct row *row)
{
	u32 i;

	for (i = 0; i < row->nr_frames; i++) {
		const struct frame *f = &row->frames[i];

		if (!f->inlined && (f->function || f->module) && !row_passes_over(row, f))
			return f;
	}
	return NULL;
}

const char *row_function(const struct row *row)
{
	const struct frame *own = row_own_frame(row);
	u32 i;

	if (own)
		return own->function;
	for (i = 0; i < row->nr_frames; i++)
		if (!row->frames[i].inlined)
			return row->frames[i].function;
	return NULL;
}

const char *row_unwound_by(const struct row *row)
{
	static const char *const names[] = {
		[MP_UNWIND_FP] = "frame pointers",
		[MP_UNWIND_TABLE] = "tables",
		[MP_UNWIND_MIXED] = "tables and frame pointers",
		[MP_UNWIND_KERNEL] = "kernel",
		[MP_UNWIND_COPY] = "copied stack",
	};

	return row->unwound_by < sizeof(names) / sizeof(names[0]) ? names[row->unwound_by] : NULL;
}

const char *row_unwound_end(const struct row *row)
{
	static const char *const names[] = {
		[MP_STACK_WHOLE] = "whole",
		[MP_STACK_DEEP] = "deep",
		[MP_STACK_CUT] = "cut",
	};

	return row_unwound_by(row) && row->unwound_end < sizeof(names) / sizeof(names[0])
		       ? names[row->unwound_end]
		       : NULL;
}

/* ---- groups ---- */

enum grouping {
	BY_STACK,
	BY_SITE,
	BY_FUNCTION,
	BY_FILE,
	BY_MAPPING,
	BY_PROCESS,
	BY_NODE,
	BY_RESOURCE
};

const char *const join_groups[] = {
	[BY_STACK] = "stack", [BY_SITE] = "site",	  [BY_FUNCTION] = "function",
	[BY_FILE] = "file",   [BY_MAPPING] = "mapping",	  [BY_PROCESS] = "process",
	[BY_NODE] = "node",   [BY_RESOURCE] = "resource", NULL,
};

/* Code without a name is told by the file it is in. */
static const char *function_key(const struct row *row)
{
	const struct frame *own = row_own_frame(row);
	const char *name = row_function(row);

	return name ? name : own && own->module ? own->module : "[unknown]";
}

static const char *file_key(const struct row *row)
{
	const struct frame *own = row_own_frame(row);

	if (!own && row->nr_frames)
		own = &row->frames[0];
	return own && own->module ? own->module : "[unknown]";
}

/* Everything but the stack and the pid of a row's process: those tell rows of one stack apart. */
static const char *group_key(const struct row *row, enum grouping by)
{
	if (by == BY_STACK)
		return row->id;
	if (by == BY_PROCESS)
		return row->kind == ORIGIN_MEMCG ? "of no process" : row->comm ? row->comm : "?";
	if (by == BY_RESOURCE)
		return row->resource ? row->resource : "[no name]";
	if (row->name)
		return row->name;
	if (by == BY_MAPPING)
		return row->kind == ORIGIN_BRK ? "[heap]" : "[anon]";
	if (!row->nr_frames)
		return origin_kind_names[row->kind];
	return by == BY_FILE ? file_key(row) : function_key(row);
}

static int same_process(const struct row *a, const struct row *b)
{
	if (a->host != b->host && (!a->host || !b->host || strcmp(a->host, b->host)))
		return 0;
	return a->pid == b->pid && (a->pid || a->space == b->space);
}

static int same_group(const struct row *a, const struct row *b, enum grouping by)
{
	if (by == BY_PROCESS)
		return same_process(a, b) && (a->kind == ORIGIN_MEMCG) == (b->kind == ORIGIN_MEMCG);
	if (by == BY_STACK && !same_process(a, b))
		return 0;
	/* A resource may be of several kinds; what has no name is told apart by its kind. */
	if (by == BY_RESOURCE && a->resource && b->resource)
		return !strcmp(a->resource, b->resource);
	return a->kind == b->kind && !strcmp(group_key(a, by), group_key(b, by));
}

static u64 group_hash(const struct row *row, enum grouping by)
{
	int by_pid = by == BY_PROCESS || by == BY_STACK;
	u64 h = by_pid ? row->pid : by == BY_RESOURCE && row->resource ? 0 : row->kind;

	h = (h + 1) * 0x9e3779b97f4a7c15ull;
	if (by != BY_PROCESS)
		h = hash_text(h, group_key(row, by));
	return h ^ h >> 32;
}

/* What any of them is used for is in use. */
static void merge_idle(struct cost *into, const struct cost *from)
{
	if (from->known && (!into->known || cost_value(from) < cost_value(into)))
		*into = *from;
}

/* By how much a cost may be above its value because it was sampled. */
static s64 spread(const struct cost *c)
{
	s64 most = cost_hi(c) - cost_value(c);
	s64 up = (s64)(estimate_hi((double)c->sampled, c->variance) - (double)c->sampled + 1);

	return up < most ? up : most;
}

/* Estimates that do not hang on each other err in both directions: together they are known better
 * than their bounds add up to. */
static void merge_sampled(struct cost *into, const struct cost *from)
{
	double total = (double)(into->sampled + from->sampled);
	double variance = into->variance + from->variance;
	s64 lo;

	into->sure += from->sure;
	if (!into->sampled || !from->sampled) {
		into->variance = variance;
	} else if (into->variance && from->variance) {
		lo = (s64)estimate_lo(total, variance);
		into->hi -= spread(into) + spread(from);
		into->hi += (s64)(estimate_hi(total, variance) - total + 1);
		into->sure = lo > into->sure ? lo : into->sure;
		into->variance = variance;
	} else {
		into->variance = 0;
	}
}

static void sum_up(struct cost *into, const struct cost *c)
{
	merge_sampled(into, c);
	into->exact += c->exact;
	into->inferred += c->inferred;
	into->sampled += c->sampled;
	into->n += c->n;
	into->counted += c->counted;
	into->hi += c->hi;
	into->known |= c->known;
	into->open |= c->open;
}

static void merge(struct row *into, struct row *from)
{
	int i;

	merge_idle(&into->cost[COST_IDLE], &from->cost[COST_IDLE]);
	if (into->resource && (!from->resource || strcmp(into->resource, from->resource)))
		into->resource = NULL;
	into->misnamed |= from->misnamed;
	for (i = 0; i < COST_MAX; i++)
		if (i != COST_IDLE)
			sum_up(&into->cost[i], &from->cost[i]);
	into->generations += from->generations;
	into->multi = 0;
	if (into->host != from->host)
		into->host = NULL;
	into->since += from->since;
	/* Of stacks that are alike but for how they were unwound the last resort is named. */
	if (from->unwound_by > into->unwound_by)
		into->unwound_by = from->unwound_by;
	if (into->ino != from->ino || into->dev != from->dev)
		into->ino = into->dev = 0;
	if (!same_process(into, from))
		into->several = 1;
	free(from->frames);
}

/* A row of many stacks has none. */
static void name_group(struct row *row, enum grouping by)
{
	u64 h;

	if (by == BY_STACK)
		return;
	row->called |= by == BY_FUNCTION && !row->name && row_function(row);
	row->name = group_key(row, by);
	row->evidence = NULL;
	row->nr_frames = 0;
	if (by == BY_PROCESS && row->kind != ORIGIN_MEMCG)
		row->kind = ORIGIN_PROCESS;
	if (by == BY_RESOURCE && row->resource)
		row->kind = ORIGIN_RESOURCE;
	if (row->several) {
		row->pid = 0;
		row->comm = NULL;
	}
	h = hash_text(HASH_SEED, join_groups[by]);
	h = hash_text(h, origin_kind_names[row->kind]);
	h = hash_text(h, row->name);
	snprintf(row->id, sizeof(row->id), "%016llx", (unsigned long long)h);
}

static int merge_all(struct report *r, enum grouping by)
{
	size_t size = 64, i, n = 0;
	u32 *first; /* number of a group's row, from 1 */
	u64 h;

	while (size < r->nr_rows * 2)
		size *= 2;
	first = calloc(size, sizeof(*first));
	if (!first)
		return -ENOMEM;
	for (i = 0; i < r->nr_rows; i++) {
		struct row *row = &r->rows[i];

		h = group_hash(row, by) & (size - 1);
		while (first[h] && !same_group(&r->rows[first[h] - 1], row, by))
			h = (h + 1) & (size - 1);
		if (first[h]) {
			merge(&r->rows[first[h] - 1], row);
			continue;
		}
		r->rows[n] = *row;
		first[h] = (u32)++n;
	}
	r->nr_rows = n;
	free(first);
	return 0;
}

void join_doubt_names(struct report *r)
{
	size_t i;
	int c;

	for (i = 0; i < r->nr_rows; i++)
		for (c = 0; c < COST_MAX && r->rows[i].misnamed; c++) {
			struct cost *k = &r->rows[i].cost[c];
			s64 all = cost_value(&r->total[c]);

			if (c == COST_IDLE || !k->known)
				continue;
			k->inferred += k->exact;
			k->exact = k->counted = 0;
			k->open = 1;
			k->hi = k->hi > all ? k->hi : all;
		}
}

/* The place in the program: where in its own function it called what got the memory. */
static int name_site(struct report *r, struct row *row)
{
	const struct frame *own = row_own_frame(row);
	const char *name = row_function(row);

	if (row->name || !own)
		return 0;
	row->name = own->line ? report_text(r, "%s %s:%u", name ? name : "[unknown]",
					    own->file ? own->file : "?", own->line)
			      : report_text(r, "%s %s+0x%llx", name ? name : "[unknown]",
					    own->module ? own->module : "?",
					    (unsigned long long)own->offset);
	row->called = 1;
	return row->name ? 0 : -ENOMEM;
}

/* Rows of nodes instead: of each node what is resident there, which is all that is known. */
static int rows_of_nodes(struct report *r)
{
	struct row *rows = calloc(MP_NODE_COLUMNS, sizeof(*rows));
	size_t i, nr = 0;
	u32 n;

	if (!rows)
		return -ENOMEM;
	for (n = 0; n < MP_NODE_COLUMNS; n++) {
		struct row *row = &rows[nr];
		struct cost *c = &row->cost[COST_NODE0 + n];

		for (i = 0; i < r->nr_rows; i++)
			sum_up(c, &r->rows[i].cost[COST_NODE0 + n]);
		if (!c->known || !(cost_value(c) || cost_hi(c))) {
			memset(c, 0, sizeof(*c));
			continue;
		}
		row->kind = ORIGIN_NODE;
		row->several = 1;
		row->name = report_text(r, "node %u", n);
		snprintf(row->id, sizeof(row->id), "node%u", n);
		row->cost[COST_RESIDENT] = *c;
		nr++;
		if (!row->name) {
			free(rows);
			return -ENOMEM;
		}
	}
	for (i = 0; i < r->nr_rows; i++)
		free(r->rows[i].frames);
	free(r->rows);
	r->rows = rows;
	r->nr_rows = nr;
	return 0;
}

int join_group(struct report *r, const char *group)
{
	unsigned int by;
	size_t i;
	int err = 0;

	for (by = 0; join_groups[by] && strcmp(group, join_groups[by]); by++)
		;
	if (!join_groups[by])
		return -EINVAL;
	if (by == BY_NODE)
		return rows_of_nodes(r);
	for (i = 0; i < r->nr_rows && !err && by == BY_SITE; i++)
		err = name_site(r, &r->rows[i]);
	if (by == BY_RESOURCE)
		join_doubt_names(r);
	if (!err)
		err = merge_all(r, (enum grouping)by);
	for (i = 0; i < r->nr_rows && !err; i++)
		name_group(&r->rows[i], (enum grouping)by);
	return err;
}

int join_is_many(const struct report *r)
{
	u32 pid = 0;
	size_t i;

	for (i = 0; i < r->nr_rows; i++) {
		if (r->rows[i].several || r->nr_parts > 1 ||
		    (pid && r->rows[i].pid && r->rows[i].pid != pid))
			return 1;
		pid = r->rows[i].pid ? r->rows[i].pid : pid;
	}
	return 0;
}

/* ---- order ---- */

static const char *sort_name(const struct row *row)
{
	const char *name = row->name ? row->name : row_function(row);

	return name ? name : "";
}

static int by_cost(const void *a, const void *b, void *column)
{
	const struct row *x = a, *y = b;
	int columns[2] = {*(int *)column, COST_RESIDENT}, i, c;

	for (i = 0; i < 2; i++) {
		s64 u = cost_value(&x->cost[columns[i]]), v = cost_value(&y->cost[columns[i]]);

		if (u != v)
			return u > v ? -1 : 1;
	}
	c = strcmp(sort_name(x), sort_name(y));
	if (!c)
		c = strcmp(x->id, y->id);
	if (!c)
		c = (x->pid > y->pid) - (x->pid < y->pid);
	return c || !x->host || !y->host ? c : strcmp(x->host, y->host);
}

void join_sort(struct report *r, int column)
{
	int sampled = column == COST_SAMPLES || column == COST_LATENCY || column == COST_REMOTE;

	/* Samples that contradict themselves rank nobody. */
	if (sampled && r->samples.unranked)
		column = COST_RESIDENT;
	if (r->nr_rows)
		qsort_r(r->rows, r->nr_rows, sizeof(*r->rows), by_cost, &column);
}
