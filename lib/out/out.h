/* SPDX-License-Identifier: GPL-2.0-only
 * Printers: rows and columns in, text out. They know no events and compute no costs. */
#ifndef MP_OUT_OUT_H
#define MP_OUT_OUT_H

#include <stdio.h>
#include "lib/join/join.h"
#include "lib/join/strips.h"

/* A JSON string whatever the bytes: a path need not be UTF-8. null for NULL. For the printers of
 * lib/out. */
struct json_t;
struct json_t *json_text(const char *s);
struct json_t *json_stack(const struct row *row);

struct out_opts {
	int column; /* sorted by */
	const int *columns; /* shown, -1 ends */
	int bytes; /* plain bytes instead of MiB */
	unsigned int rows; /* at most so many, 0 all */
	const struct moment *moments; /* of the timeline, or NULL: for the page */
	size_t nr_moments;
	/* For the page: the mappings, or NULL; the same recording by the other owners, or NULL. */
	const struct strips *strips;
	const struct report *other;
	const char *owner_name, *other_name; /* what it is by, and what other is by */
	int width; /* of the contract's lines, 0: as on paper */
	const char *group;
	const char *filter, *evidence; /* as they were asked for; NULL: all rows, all parts */
};

/* The recorded cgroup (memcg not NULL): lines of the contract screen, and recording.cgroups. */
/* What accessed bits say; nothing and null where they were not watched. */
void out_access(FILE *f, const struct report *r, const struct out_opts *o);
struct json_t *out_access_json(const struct report *r);
/* The same of imported samples. */
void out_samples(FILE *f, const struct report *r);
struct json_t *out_samples_json(const struct report *r);
void out_cgroup(FILE *f, const struct report *r, const struct out_opts *o);
struct json_t *out_cgroups_json(const struct report *r);
/* Why a flight recorder wrote its file: lines of the contract screen, and recording.trigger. */
void out_cause(FILE *f, const struct report *r, const struct out_opts *o);
struct json_t *out_cause_json(const struct report *r);
/* Bytes in words; good for the next fifteen calls. */
const char *out_amount(const struct out_opts *o, s64 v);
/* A value of a column in its unit; as good. */
const char *out_number(const struct out_opts *o, int column, s64 v);

/* owner.c: whose a row is and of what kind, to the end of the line: OUT_FRAMES of the program's
 * frames, innermost first, and what they called. lines: where in each function, too, to tell it
 * from another row that reads the same. */
#define OUT_FRAMES 4u
void out_owner(FILE *f, const struct row *row, int lines);

/* Who was recorded, for how long, until when, with what losses. */
void out_targets(FILE *f, const struct report *r, int with_date);
/* Lines of the contract screen, to be freed; NULL without memory. */
char *out_contract(const struct report *r, const struct out_opts *o);
/* Does any row have evidence of the column? */
int out_has(const struct report *r, int column);
/* "exact", "inferred" or "sampled": the weakest of its parts. */
const char *out_grade(const struct cost *c);
/* A row as a stack of names, plain text whatever they were, root first: the process, with its pid
 * where there are several, and the functions, or [kind] and what the row is called. frame is NULL
 * for what is no function. Stops at the first that is not 0, and returns it. */
typedef int (*out_step)(void *ctx, const char *name, const struct frame *frame);
int out_path(const struct row *row, int many, out_step step, void *ctx);

/* -ENODATA: the report has nothing that the format could show. */
/* Instead of the rows: functions with what they called, in one column. */
int out_children(FILE *f, const struct report *r, const struct out_opts *o);
int out_table(FILE *f, const struct report *r, const struct out_opts *o);
int out_folded(FILE *f, const struct report *r, const struct out_opts *o);
int out_json(FILE *f, const struct report *r, const struct out_opts *o);
int out_csv(FILE *f, const struct report *r, const struct out_opts *o);
int out_pprof(FILE *f, const struct report *r, const struct out_opts *o);
int out_speedscope(FILE *f, const struct report *r, const struct out_opts *o);
int out_html(FILE *f, const struct report *r, const struct out_opts *o);

/* THE formats of report. */
struct out_format {
	const char *name;
	int (*print)(FILE *f, const struct report *r, const struct out_opts *o);
	int one_column; /* of a column that adds up; the others show them all */
	int is_binary;
};
extern const struct out_format out_formats[]; /* a NULL name ends */
const struct out_format *out_format_find(const char *name);
/* Why a row is resident and what could be given back, as far as its numbers tell. */
void out_sentence(FILE *f, const struct row *row, const struct out_opts *o);
/* The same as text, to be freed. */
char *out_owner_text(const struct row *row);
/* why.c: the chain of evidence behind the rows of an id, or of ID@PID: one process has an id once;
 * else of a name or function. -ENOENT when there is none. */
int out_why(FILE *f, const struct report *r, const char *what, const struct out_opts *o);
/* timeline.c: what was when: stocks as of the latest picture, where it is new; of flows what came
 * since the moment before. Marks stand at their time. format: table, csv or json. */
int out_timeline(FILE *f, const struct report *r, const struct moment *all, size_t n,
		 const struct out_opts *o, const char *format);
struct json_t *out_timeline_json(const struct report *r, const struct moment *all, size_t n);

#endif
