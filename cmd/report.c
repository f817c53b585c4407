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
#include "lib/join/filter.h"
#include "lib/out/out.h"

struct options {
	const char *input, *by, *columns, *group, *format, *why, *output, *view, *filter, *evidence;
	struct filter *rows_of;
	enum evidence weakest;
	enum owner_mode owner;
	int bytes, children;
	unsigned int rows;
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

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"by", required_argument, NULL, 's'},
		{"columns", required_argument, NULL, 'c'},
		{"group", required_argument, NULL, 'g'},
		{"owner", required_argument, NULL, 'w'},
		{"why", required_argument, NULL, 'y'},
		{"rows", required_argument, NULL, 'r'},
		{"bytes", no_argument, NULL, 'b'},
		{"format", required_argument, NULL, 'f'},
		{"output", required_argument, NULL, 'o'},
		{"view", required_argument, NULL, 'V'},
		{"filter", required_argument, NULL, 'F'},
		{"evidence", required_argument, NULL, 'e'},
		{"children", no_argument, NULL, 'C'},
		{NULL, 0, NULL, 0},
	};
	unsigned long rows;
	int c, status;

	while ((c = getopt_long(argc, argv, "i:s:o:", longs, NULL)) != -1) {
		switch (c) {
		case 'i':
			o->input = optarg;
			break;
		case 's':
			o->by = optarg;
			break;
		case 'c':
			o->columns = optarg;
			break;
		case 'g':
			o->group = optarg;
			break;
		case 'w':
			if (owner_parse(optarg, &o->owner))
				return misuse("report", "--owner %s: auto, alloc or fault", optarg);
			break;
		case 'y':
			o->why = optarg;
			break;
		case 'r':
			if (parse_count(optarg, &rows))
				return misuse("report", "--rows %s: not a number; 0 shows all",
					      optarg);
			o->rows = (unsigned int)rows;
			break;
		case 'b':
			o->bytes = 1;
			break;
		case 'f':
			o->format = optarg;
			break;
		case 'o':
			o->output = optarg;
			break;
		case 'V':
			o->view = optarg;
			break;
		case 'C':
			o->children = 1;
			break;
		case 'F':
			status = take_filter(o, optarg);
			if (status)
				return status;
			break;
		case 'e':
			if (evidence_parse(optarg, &o->weakest))
				return misuse("report", "--evidence %s: exact, inferred or sampled",
					      optarg);
			o->evidence = optarg;
			break;
		default:
			return usage(stderr, "report");
		}
	}
	if (o->format && !out_format_find(o->format))
		return misuse("report",
			      "--format %s: table, folded, json, csv, pprof, speedscope or html",
			      o->format);
	if (o->children && o->format && strcmp(o->format, "table"))
		return misuse("report", "--children is a table: no --format %s", o->format);
	if (argc - optind + (o->input != NULL) > 1)
		return misuse("report", "one trace at a time; diff compares two");
	if (optind < argc)
		o->input = argv[optind];
	if (!o->input)
		o->input = "memprov.data";
	return 0;
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

static int print(const struct options *o, const struct report *r, const struct out_opts *out)
{
	const struct out_format *format = format_of(o);
	FILE *f = stdout;
	int err;

	if (format->one_column && !cost_columns[out->column].additive)
		return fail("report",
			    "column %s is not additive: folded stacks cannot show it; use --format "
			    "table",
			    cost_columns[out->column].name);
	if (format->is_binary && !o->output && isatty(1))
		return fail("report", "--format %s is not for a terminal: name a file with -o",
			    format->name);
	if (o->output) {
		f = fopen(o->output, "we");
		if (!f)
			return fail("report", "cannot create %s: %s", o->output, strerror(errno));
	}
	if (format->one_column && !o->format)
		fputs("memprov: report: --by into a pipe or file prints folded stacks; --format "
		      "table for rows\n",
		      stderr);
	if (format->one_column)
		say_nothing_seen(r, out->column);
	err = o->why ? out_why(f, r, o->why) : format->print(f, r, out);
	if (f != stdout && fclose(f))
		err = -errno;
	if (err == -ENOENT)
		return fail("report", "no row '%s': ids are in --format json", o->why);
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

/* The rows asked for, grouped and sorted, in the format asked for. */
static int show(const struct options *o, struct report *r, struct out_opts *out)
{
	int status;

	if (o->rows_of)
		filter_report(o->rows_of, r);
	if (o->evidence)
		evidence_keep(r, o->weakest);
	if (join_group(r, o->children ? "stack" : o->group))
		return misuse("report", "--group %s: stack, function, mapping, file or process",
			      o->group);
	join_sort(r, out->column);
	status = print(o, r, out);
	return !status && r->lost ? EXIT_LOSS : status;
}

int cmd_report(int argc, char **argv)
{
	struct options o = {.group = "stack", .rows = 40};
	int columns[COST_MAX + 2], status, err;
	struct report *r = NULL;
	struct out_opts out = {.columns = columns};

	status = parse(&o, argc, argv);
	if (!status) {
		out.column = columns_by("report", o.by);
		status = out.column < 0;
	}
	if (!status && o.columns && !strcmp(o.columns, "help")) {
		filter_free(&o.rows_of);
		return columns_list();
	}
	if (!status) {
		err = input_join(o.input, o.owner, &r);
		if (err)
			status = fail_trace("report", o.input, err);
	}
	if (!status)
		status = choose_columns(&o, r, columns, &out.column);
	if (!status) {
		out.bytes = o.bytes;
		out.rows = o.rows;
		out.group = o.group;
		out.filter = o.filter;
		out.evidence = o.evidence;
		status = show(&o, r, &out);
	}
	join_free(&r);
	filter_free(&o.rows_of);
	return status;
}
