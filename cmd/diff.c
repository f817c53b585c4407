/* SPDX-License-Identifier: GPL-2.0-only
 * diff: read two traces, join them, print what changed; fail when a rule says so. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "cmd/columns.h"
#include "cmd/pager.h"
#include "lib/join/diff.h"

#define EXIT_RULE  4
#define MAX_RULES  64
#define TABLE_ROWS 40

struct options {
	const char *base, *next, *by, *format;
	enum owner_mode owner;
	int by_resource;
	struct rules names;
	const char *rule_text[MAX_RULES];
	struct diff_rule rules[MAX_RULES];
	size_t nr_rules;
	unsigned int rows;
};

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"by", required_argument, NULL, 's'},	   {"owner", required_argument, NULL, 'w'},
		{"fail-on", required_argument, NULL, 'x'}, {"format", required_argument, NULL, 'f'},
		{"rows", required_argument, NULL, 'r'},	   {"names", required_argument, NULL, 'N'},
		{"group", required_argument, NULL, 'g'},   {NULL, 0, NULL, 0},
	};
	unsigned long rows;
	int c, status;

	while ((c = getopt_long(argc, argv, "s:", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			o->by = optarg;
			break;
		case 'w':
			if (owner_parse(optarg, &o->owner))
				return misuse("diff", "--owner %s: auto, alloc or fault", optarg);
			break;
		case 'x':
			if (o->nr_rules == MAX_RULES)
				return misuse("diff", "at most %d rules", MAX_RULES);
			o->rule_text[o->nr_rules++] = optarg;
			break;
		case 'f':
			o->format = optarg;
			break;
		case 'r':
			if (parse_count(optarg, &rows))
				return misuse("diff", "--rows %s: not a number; 0 shows all",
					      optarg);
			o->rows = (unsigned int)rows;
			break;
		case 'N':
			status = names_option("diff", optarg, &o->names);
			if (status)
				return status;
			break;
		case 'g':
			if (strcmp(optarg, "stack") && strcmp(optarg, "resource"))
				return misuse("diff", "--group %s: stack or resource", optarg);
			o->by_resource = !strcmp(optarg, "resource");
			break;
		default:
			return bad_option("diff", longs, argv);
		}
	}
	if (strcmp(o->format, "table") && strcmp(o->format, "json") &&
	    strcmp(o->format, "markdown") && strcmp(o->format, "folded"))
		return misuse("diff", "--format %s: table, json, markdown or folded", o->format);
	if (argc - optind == 2) {
		o->base = argv[optind];
		o->next = argv[optind + 1];
	} else if (argc != optind) {
		return misuse("diff",
			      "%d file%s: give two, or none for memprov.data.old and "
			      "memprov.data",
			      argc - optind, argc - optind > 1 ? "s" : "");
	}
	return 0;
}

static int parse_rules(struct options *o)
{
	const char *near = "resident";
	size_t i;
	int err;

	for (i = 0; i < o->nr_rules; i++) {
		err = diff_rule_parse(o->rule_text[i], &o->rules[i], &near);
		if (err == -ENOENT)
			return fail("diff",
				    "%s: no such column: the nearest is %s; memprov report "
				    "--columns help lists all",
				    o->rule_text[i], near);
		if (err)
			return misuse("diff",
				      "%s: a rule is [OWNER:]COLUMN>+N%% or [OWNER:]COLUMN>+SIZE",
				      o->rule_text[i]);
	}
	return 0;
}

static int print(const struct options *o, struct diff *d)
{
	FILE *f = strcmp(o->format, "table") ? stdout : pager_open();
	int failed = 0, undecided = 0, err, closed;
	size_t i;

	for (i = 0; i < d->nr_rules; i++) {
		diff_judge(d, &d->rules[i]);
		failed |= d->rules[i].verdict == DIFF_FAILED;
		undecided |= d->rules[i].verdict == DIFF_UNDECIDED;
	}
	if (!strcmp(o->format, "json"))
		err = out_diff_json(f, d);
	else if (!strcmp(o->format, "markdown"))
		err = out_diff_markdown(f, d, o->rows);
	else if (!strcmp(o->format, "folded"))
		err = out_diff_folded(f, d);
	else
		err = out_diff_table(f, d, o->rows);
	closed = pager_close(f);
	err = err ? err : closed;
	if (err == -ENODATA)
		return fail("diff", "column %s is not additive: folded stacks cannot show it",
			    cost_columns[d->column].name);
	if (err)
		return fail("diff", "cannot write: %s", strerror(-err));
	if (failed)
		return EXIT_RULE;
	return undecided || d->base->lost || d->next->lost ? EXIT_LOSS : 0;
}

/* Of cgroups what they are charged, as report does. */
static int usual(const struct report *base, const struct report *next)
{
	return base->total[COST_CHARGED].known && next->total[COST_CHARGED].known ? COST_CHARGED
										  : COST_RESIDENT;
}

/* The file's report, with the names and groups asked for. */
static int read_side(const struct options *o, const char *path, struct report **ret_r)
{
	int err = input_join(path, o->owner, ret_r);

	if (!err && o->names.nr)
		join_rules(*ret_r, o->names.rules, o->names.nr);
	if (!err && o->by_resource)
		err = join_group(*ret_r, "resource");
	return err;
}

int cmd_diff(int argc, char **argv)
{
	struct options o = {.base = "memprov.data.old",
			    .next = "memprov.data",
			    .format = "table",
			    .rows = TABLE_ROWS};
	struct report *base = NULL, *next = NULL;
	struct diff *d = NULL;
	int column, err, status = parse(&o, argc, argv);

	if (!status)
		status = parse_rules(&o);
	if (status)
		return status;
	column = o.by ? columns_by("diff", o.by) : o.nr_rules ? o.rules[0].column : -1;
	if (o.by && column < 0)
		return 1;
	if (column == COST_IDLE && !o.by_resource)
		return misuse("diff", "idle is a resource's: --group resource");
	err = read_side(&o, o.base, &base);
	if (err)
		return fail_trace("diff", o.base, err);
	err = read_side(&o, o.next, &next);
	if (err) {
		status = fail_trace("diff", o.next, err);
	} else if (diff_new(base, next, column < 0 ? usual(base, next) : column, &d)) {
		status = fail("diff", "out of memory");
	} else {
		d->rules = o.rules;
		d->nr_rules = o.nr_rules;
		status = print(&o, d);
	}
	diff_free(&d);
	join_free(&next);
	join_free(&base);
	rules_release(&o.names);
	return status;
}
