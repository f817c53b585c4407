/* SPDX-License-Identifier: GPL-2.0-only
 * report: read a trace, join it, print it. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "cmd/columns.h"
#include "cmd/pager.h"
#include "lib/join/filter.h"
#include "lib/out/out.h"
#include "lib/text/text.h"

#define MAX_INPUTS 64
#define TABLE_ROWS 40
#define MOMENTS	   30
#define MAX_STRIPS 300

struct options {
	const char *inputs[MAX_INPUTS + 1]; /* one more is too many */
	size_t nr_inputs;
	const char *by, *columns, *group, *format, *why, *output, *view, *filter, *evidence;
	struct filter *rows_of;
	struct rules names;
	enum evidence weakest;
	enum owner_mode owner;
	int bytes, children, timeline, quiet;
	u64 at_ns;
	int has_at;
	unsigned int rows;
	int has_rows;
};

static int take_filter(struct options *o, const char *text)
{
	char msg[256];
	int err;

	filter_free(&o->rows_of);
	err = filter_parse(text, &o->rows_of, msg, sizeof(msg));
	if (err == -ENOMEM)
		return fail("report", "out of memory");
	o->filter = text;
	return err ? misuse("report", "--filter %s: %s", text, msg) : 0;
}

static void add_input(struct options *o, const char *path)
{
	if (o->nr_inputs <= MAX_INPUTS)
		o->inputs[o->nr_inputs++] = path;
}

static const struct option longs[] = {
	{"by", required_argument, NULL, 's'},	  {"columns", required_argument, NULL, 'c'},
	{"group", required_argument, NULL, 'g'},  {"owner", required_argument, NULL, 'w'},
	{"why", required_argument, NULL, 'y'},	  {"rows", required_argument, NULL, 'r'},
	{"bytes", no_argument, NULL, 'b'},	  {"format", required_argument, NULL, 'f'},
	{"output", required_argument, NULL, 'o'}, {"view", required_argument, NULL, 'V'},
	{"filter", required_argument, NULL, 'F'}, {"evidence", required_argument, NULL, 'e'},
	{"children", no_argument, NULL, 'C'},	  {"at", required_argument, NULL, 'a'},
	{"timeline", no_argument, NULL, 't'},	  {"quiet", no_argument, NULL, 'q'},
	{"names", required_argument, NULL, 'N'},  {NULL, 0, NULL, 0},
};

static int parse_option(struct options *o, int c, char **argv)
{
	unsigned long rows;

	switch (c) {
	case 'i':
		add_input(o, optarg);
		return 0;
	case 's':
		o->by = optarg;
		return 0;
	case 'c':
		o->columns = optarg;
		return 0;
	case 'g':
		o->group = optarg;
		return 0;
	case 'w':
		if (!owner_parse(optarg, &o->owner))
			return 0;
		return misuse("report", "--owner %s: auto, alloc or fault", optarg);
	case 'y':
		o->why = optarg;
		return 0;
	case 'r':
		if (parse_count(optarg, &rows))
			return misuse("report", "--rows %s: not a number; 0 shows all", optarg);
		o->rows = (unsigned int)rows;
		o->has_rows = 1;
		return 0;
	case 'b':
		o->bytes = 1;
		return 0;
	case 'f':
		o->format = optarg;
		return 0;
	case 'o':
		o->output = optarg;
		return 0;
	case 'V':
		o->view = optarg;
		return 0;
	case 'C':
		o->children = 1;
		return 0;
	case 't':
		o->timeline = 1;
		return 0;
	case 'q':
		o->quiet = 1;
		return 0;
	case 'a':
		o->at_ns = parse_duration(optarg);
		o->has_at = 1;
		if (o->at_ns || !strcmp(optarg, "0"))
			return 0;
		return misuse("report", "--at %s: not a time since the start; try 10s or 500ms",
			      optarg);
	case 'F':
		return take_filter(o, optarg);
	case 'N':
		return names_option("report", optarg, &o->names);
	case 'e':
		o->evidence = optarg;
		if (!evidence_parse(optarg, &o->weakest))
			return 0;
		return misuse("report", "--evidence %s: exact, inferred or sampled", optarg);
	default:
		return bad_option("report", longs, argv);
	}
}

static int is_format(const struct options *o, const char *a, const char *b, const char *c)
{
	return !o->format || !strcmp(o->format, a) || !strcmp(o->format, b) ||
	       !strcmp(o->format, c);
}

/* What cannot be had together. */
static int check_options(const struct options *o)
{
	if (o->format && !out_format_find(o->format))
		return misuse("report",
			      "--format %s: table, folded, json, csv, pprof, speedscope or html",
			      o->format);
	if (o->children && o->format && strcmp(o->format, "table"))
		return misuse("report", "--children is a table: no --format %s", o->format);
	if (o->timeline && !is_format(o, "table", "json", "csv"))
		return misuse("report", "--timeline is a table, json or csv: no --format %s",
			      o->format);
	if (o->timeline && (o->children || o->why || o->has_at || o->rows_of || o->evidence))
		return misuse("report", "--timeline is of all rows, from the start to the end: no "
					"--children, --why, --at, --filter, --evidence");
	if (o->has_rows && o->rows && !is_format(o, "table", "json", "csv") &&
	    strcmp(o->format, "folded"))
		return misuse("report", "--rows cuts table, folded, json and csv: not --format %s",
			      o->format);
	if (o->nr_inputs > MAX_INPUTS)
		return misuse("report", "at most %d files", MAX_INPUTS);
	if (o->nr_inputs > 1 && (o->timeline || o->has_at))
		return misuse("report", "%s is of one file", o->timeline ? "--timeline" : "--at");
	return 0;
}

static int parse(struct options *o, int argc, char **argv)
{
	int c, status = 0;

	while (!status && (c = getopt_long(argc, argv, "i:s:o:q", longs, NULL)) != -1)
		status = parse_option(o, c, argv);
	for (; optind < argc; optind++)
		add_input(o, argv[optind]);
	if (!o->nr_inputs)
		add_input(o, "memprov.data");
	return status ? status : check_options(o);
}

/* A flame graph of nothing is an empty file, which says nothing. */
static void say_nothing_seen(const struct report *r, int column)
{
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].cost[column].known && cost_value(&r->rows[i].cost[column]) > 0)
			return;
	fprintf(stderr, "memprov: report: nothing was seen in column %s: no stacks to print\n",
		cost_columns[column].name);
}

static const struct out_format children = {"children", out_children, 0, 0};

/* Into a pipe or file --by COLUMN means stacks of it. */
static const struct out_format *format_of(const struct options *o)
{
	if (o->children)
		return &children;
	if (o->format)
		return out_format_find(o->format);
	return out_format_find(o->by && !o->why && (o->output || !isatty(1)) ? "folded" : "table");
}

/* -o, the pager or the standard output. */
static FILE *open_output(const struct options *o, const struct out_format *format)
{
	if (o->output)
		return fopen(o->output, "we");
	return !strcmp(format->name, "table") || format == &children || o->why || o->timeline
		       ? pager_open()
		       : stdout;
}

static void say_format(const struct options *o, const struct report *r, const struct out_opts *out,
		       const struct out_format *format)
{
	if (o->quiet || !format->one_column || o->timeline)
		return;
	if (!o->format)
		fputs("memprov: report: --by into a pipe or file prints folded stacks; --format "
		      "table for rows\n",
		      stderr);
	say_nothing_seen(r, out->column);
}

static int print(const struct options *o, const struct report *r, const struct out_opts *out)
{
	const struct out_format *format = format_of(o);
	FILE *f;
	int err, closed;

	if (format->one_column && !o->timeline && !cost_columns[out->column].additive)
		return fail("report",
			    "column %s is not additive: folded stacks cannot show it; use --format "
			    "table",
			    cost_columns[out->column].name);
	if (format->is_binary && !o->output && isatty(1))
		return fail("report", "--format %s is not for a terminal: name a file with -o",
			    format->name);
	f = open_output(o, format);
	if (!f)
		return fail("report", "cannot create %s: %s", o->output, strerror(errno));
	say_format(o, r, out, format);
	err = o->why	    ? out_why(f, r, o->why, out)
	      : o->timeline ? out_timeline(f, r, out->moments, out->nr_moments, out,
					   o->format ? o->format : "table")
			    : format->print(f, r, out);
	closed = o->output ? (fclose(f) ? -errno : 0) : pager_close(f);
	err = err ? err : closed;
	if (err == -ENOENT)
		return fail(
			"report",
			"no row '%s': neither an id, as --format json has them, nor the name or "
			"function of an owner",
			o->why);
	if (err == -ENODATA)
		return fail("report", "no column has evidence: --format %s would be empty",
			    format->name);
	return err ? fail("report", "cannot write: %s", strerror(-err)) : 0;
}

static int check_column(const struct report *r, int column)
{
	const char *absent = cost_absent(r, (enum cost_id)column);

	if (!absent)
		return 0;
	return fail("report", "column %s is absent: %s; the nearest is %s",
		    cost_columns[column].name, absent, r->has_walk ? "resident" : "faulted");
}

/* Which columns are shown, into columns, and the one that is sorted by. 0, or the exit status. */
static int choose_columns(const struct options *o, const struct report *r, int *columns, int *by)
{
	int wide = o->format && (!strcmp(o->format, "csv") || !strcmp(o->format, "html"));

	/* Of a cgroup, what it is charged comes first: most of it may be in no process. */
	if (!o->by && r->total[COST_CHARGED].known)
		*by = COST_CHARGED;
	if (o->view) {
		int first = columns_view("report", r, o->view, columns);

		if (first < 0)
			return EXIT_USAGE;
		if (!o->by)
			*by = first;
	} else if (wide && !o->columns) {
		columns_seen(r, columns);
	} else if (columns_pick("report", o->columns, *by, columns)) {
		return 1;
	}
	return o->by || o->children ? check_column(r, *by) : 0;
}

static int bad_group(const char *group)
{
	const char *near = text_nearest(group, join_groups);

	return misuse("report",
		      "--group %s: stack, site, function, file, mapping, process, node or "
		      "resource%s%s",
		      group, near ? "; did you mean " : "", near ? near : "");
}

/* The rows asked for, grouped and sorted, in the format asked for. */
static int show(const struct options *o, struct report *r, struct out_opts *out)
{
	int status, err;

	if (o->names.nr)
		join_rules(r, o->names.rules, o->names.nr);
	if (o->rows_of)
		filter_report(o->rows_of, r);
	if (o->evidence)
		evidence_keep(r, o->weakest);
	err = join_group(r, o->children ? "stack" : o->group);
	if (err == -ENOMEM)
		return fail("report", "out of memory");
	if (err)
		return bad_group(o->group);
	join_sort(r, out->column);
	status = print(o, r, out);
	return !status && r->lost ? EXIT_LOSS : status;
}

/* ---- files ---- */

static int join_one(const struct options *o, const char *path, struct report **ret_r)
{
	u64 duration = 0;
	int err;

	if (!o->has_at)
		return join_file(path, o->owner, ret_r);
	err = join_file_at(path, o->owner, o->at_ns, ret_r, &duration);
	if (err == -ERANGE)
		fail("report", "--at: the recording lasted %.3f s", (double)duration / 1e9);
	return err;
}

/* ret_in: of one file, to be read again. */
static int join_all(const struct options *o, struct input *ret_in, struct report **ret_r,
		    const char **ret_path)
{
	struct report *parts[MAX_INPUTS] = {0};
	size_t i, n = o->nr_inputs;
	struct input in = {.fd = -1};
	const char *path;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		err = input_open(&in, o->inputs[i], &path);
		if (!err)
			err = join_one(o, path, &parts[i]);
		if (err && err != -ERANGE)
			fail_trace("report", o->inputs[i], err);
		if (!err && n == 1) {
			*ret_in = in;
			*ret_path = path;
		} else {
			input_close(&in);
		}
	}
	if (!err && n == 1)
		*ret_r = parts[0];
	else if (!err)
		err = join_merge(parts, n, o->inputs, ret_r);
	for (i = 0; err && i < n; i++)
		join_free(&parts[i]);
	return err ? 1 : 0;
}

/* Of one file, for the formats that show more than rows. */
struct beside {
	struct moment *moments;
	struct strips *strips;
	struct report *other;
};

/* The rows of the page by the other owners: who touched the memory beside who mapped it. */
static int join_other(const struct options *o, const char *path, struct beside *b)
{
	int err = join_file(path, o->owner == OWNER_FAULT ? OWNER_AUTO : OWNER_FAULT, &b->other);

	if (!err && o->names.nr)
		join_rules(b->other, o->names.rules, o->names.nr);
	if (!err && o->rows_of)
		filter_report(o->rows_of, b->other);
	if (!err && o->evidence)
		evidence_keep(b->other, o->weakest);
	return err ? err : join_group(b->other, o->group);
}

static int look_beside(const struct options *o, const char *path, struct out_opts *out,
		       struct beside *b)
{
	int page = o->format && !strcmp(o->format, "html") && !o->timeline, err = 0;

	if (o->nr_inputs > 1 || o->has_at)
		return 0;
	if (page || o->timeline)
		err = join_timeline(path, o->owner, MOMENTS, &b->moments, &out->nr_moments);
	if (!err && page)
		err = strips_read(path, MAX_STRIPS, &b->strips);
	if (!err && page)
		err = join_other(o, path, b);
	out->moments = b->moments;
	out->strips = b->strips;
	out->other = b->other;
	out->owner_name = owner_names[o->owner];
	out->other_name = owner_names[o->owner == OWNER_FAULT ? OWNER_AUTO : OWNER_FAULT];
	if (err == -EINVAL)
		return bad_group(o->group);
	return err ? fail_trace("report", o->inputs[0], err) : 0;
}

int cmd_report(int argc, char **argv)
{
	struct options o = {.group = "stack", .rows = TABLE_ROWS};
	int columns[COST_MAX + 2], status;
	struct report *r = NULL;
	struct out_opts out = {.columns = columns};
	struct beside beside = {0};
	struct input in = {.fd = -1};
	const char *path = NULL;

	status = parse(&o, argc, argv);
	if (!status) {
		out.column = columns_by("report", o.by);
		status = out.column < 0;
	}
	if (!status && o.columns && !strcmp(o.columns, "help")) {
		filter_free(&o.rows_of);
		return columns_list();
	}
	if (!status)
		status = join_all(&o, &in, &r, &path);
	if (!status)
		status = choose_columns(&o, r, columns, &out.column);
	if (!status)
		status = look_beside(&o, path, &out, &beside);
	if (!status) {
		const char *format = format_of(&o)->name;
		int is_table = !strcmp(format, "table") || o.children || o.why;

		out.bytes = o.bytes;
		out.rows = is_table || o.has_rows ? o.rows : 0;
		out.group = o.group;
		out.filter = o.filter;
		out.evidence = o.evidence;
		status = show(&o, r, &out);
	}
	free(beside.moments);
	strips_free(&beside.strips);
	join_free(&beside.other);
	input_close(&in);
	join_free(&r);
	filter_free(&o.rows_of);
	rules_release(&o.names);
	return status;
}
