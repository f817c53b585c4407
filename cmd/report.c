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
#include "lib/join/join.h"
#include "lib/out/out.h"

struct options {
	const char *input, *by, *columns, *group, *format, *why, *output;
	enum owner_mode owner;
	int bytes;
	unsigned int rows;
};

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"by", required_argument, NULL, 's'},	  {"columns", required_argument, NULL, 'c'},
		{"group", required_argument, NULL, 'g'},  {"owner", required_argument, NULL, 'w'},
		{"why", required_argument, NULL, 'y'},	  {"rows", required_argument, NULL, 'r'},
		{"bytes", no_argument, NULL, 'b'},	  {"format", required_argument, NULL, 'f'},
		{"output", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
	};
	unsigned long rows;
	int c;

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
		default:
			return usage(stderr, "report");
		}
	}
	if (o->format && !out_format_find(o->format))
		return misuse("report",
			      "--format %s: table, folded, json, csv, pprof, speedscope or html",
			      o->format);
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

/* Into a pipe or file --by COLUMN means stacks of it. */
static const struct out_format *format_of(const struct options *o)
{
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

int cmd_report(int argc, char **argv)
{
	struct options o = {.group = "stack", .rows = 40};
	int columns[COST_MAX + 2], status, err, wide;
	struct report *r = NULL;
	struct out_opts out = {.columns = columns};

	status = parse(&o, argc, argv);
	if (status)
		return status;
	out.column = columns_by("report", o.by);
	if (out.column < 0)
		return 1;
	if (o.columns && !strcmp(o.columns, "help"))
		return columns_list();
	err = input_join(o.input, o.owner, &r);
	if (err)
		return fail_trace("report", o.input, err);
	/* Of a cgroup, what it is charged comes first: most of it may be in no process. */
	if (!o.by && r->total[COST_CHARGED].known)
		out.column = COST_CHARGED;
	wide = o.format && (!strcmp(o.format, "csv") || !strcmp(o.format, "html"));
	if (wide && !o.columns)
		columns_seen(r, columns);
	else if (columns_pick("report", o.columns, out.column, columns))
		status = 1;
	if (status || (o.by && check_column(r, out.column))) {
		join_free(&r);
		return 1;
	}
	out.bytes = o.bytes;
	out.rows = o.rows;
	out.group = o.group;
	if (join_group(r, o.group)) {
		join_free(&r);
		return misuse("report", "--group %s: stack, function, mapping, file or process",
			      o.group);
	}
	join_sort(r, out.column);
	status = print(&o, r, &out);
	if (!status && r->lost)
		status = EXIT_LOSS;
	join_free(&r);
	return status;
}
