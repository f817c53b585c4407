/* SPDX-License-Identifier: GPL-2.0-only
 * report: read a trace, join it, print it. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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

static int usage(void)
{
	fputs("usage: memprov report [-i FILE | FILE] [--by|-s COLUMN] [--columns LIST]\n"
	      "                      [--group stack|function|mapping|file|process] [--owner "
	      "auto|alloc|fault]\n"
	      "                      [--why ID] [--rows N] [--bytes] [--format table|folded|json] "
	      "[-o OUT]\n",
	      stderr);
	return EXIT_USAGE;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"by", required_argument, NULL, 's'},	  {"columns", required_argument, NULL, 'c'},
		{"group", required_argument, NULL, 'g'},  {"owner", required_argument, NULL, 'w'},
		{"why", required_argument, NULL, 'y'},	  {"rows", required_argument, NULL, 'r'},
		{"bytes", no_argument, NULL, 'b'},	  {"format", required_argument, NULL, 'f'},
		{"output", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0},
	};
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
				return usage();
			break;
		case 'y':
			o->why = optarg;
			break;
		case 'r':
			o->rows = (unsigned int)strtoul(optarg, NULL, 10);
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
			return usage();
		}
	}
	if (optind < argc)
		o->input = argv[optind++];
	return optind < argc ? usage() : 0;
}

static int print(const struct options *o, const struct report *r, const struct out_opts *out)
{
	const char *format = o->format;
	FILE *f = stdout;
	int err;

	if (!format)
		format = o->by && !o->output && !isatty(1) ? "folded" : "table";
	if (!strcmp(format, "folded") && !cost_columns[out->column].additive)
		return fail("report",
			    "column %s is not additive: folded stacks cannot show it; use --format "
			    "table",
			    cost_columns[out->column].name);
	if (strcmp(format, "folded") && strcmp(format, "table") && strcmp(format, "json"))
		return usage();
	if (o->output) {
		f = fopen(o->output, "we");
		if (!f)
			return fail("report", "cannot create %s: %s", o->output, strerror(errno));
	}
	if (!strcmp(format, "folded") && !o->format)
		fputs("memprov: report: stdout is no terminal: folded stacks; --format table for "
		      "rows\n",
		      stderr);
	if (o->why)
		err = out_why(f, r, o->why);
	else if (!strcmp(format, "table"))
		err = out_table(f, r, out);
	else if (!strcmp(format, "json"))
		err = out_json(f, r, out);
	else
		err = out_folded(f, r, out->column);
	if (f != stdout && fclose(f))
		err = -errno;
	if (err == -ENOENT)
		return fail("report", "no row '%s': ids are in --format json", o->why);
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
	struct options o = {.input = "memprov.data", .group = "stack", .rows = 40};
	int columns[COST_MAX + 2], status, err;
	struct report *r = NULL;
	struct out_opts out = {.columns = columns};

	status = parse(&o, argc, argv);
	if (status)
		return status;
	out.column = columns_by("report", o.by);
	if (out.column < 0)
		return 1;
	err = join_file(o.input, o.owner, &r);
	if (err)
		return fail_trace("report", o.input, err);
	/* Of a cgroup, what it is charged comes first: most of it may be in no process. */
	if (!o.by && r->total[COST_CHARGED].known)
		out.column = COST_CHARGED;
	if (columns_pick("report", o.columns, out.column, columns) ||
	    (o.by && check_column(r, out.column))) {
		join_free(&r);
		return 1;
	}
	if (o.format && !strcmp(o.format, "json"))
		o.rows = 0;
	out.bytes = o.bytes;
	out.rows = o.rows;
	out.group = o.group;
	if (join_group(r, o.group)) {
		join_free(&r);
		return usage();
	}
	join_sort(r, out.column);
	status = print(&o, r, &out);
	if (!status && r->lost)
		status = EXIT_LOSS;
	join_free(&r);
	return status;
}
