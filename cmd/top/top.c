/* SPDX-License-Identifier: GPL-2.0-only
 * top: a recording while it goes on, or one of a file, on a screen or as tables. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "cmd/columns.h"
#include "cmd/stop.h"
#include "cmd/top/top.h"
#include "lib/capture/session.h"

volatile sig_atomic_t top_stop;

static void on_signal(int sig)
{
	top_stop = sig;
}

void top_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	stop_by_signal(&sa);
}

static const struct option longs[] = {
	TARGET_LONG,
	{"by", required_argument, NULL, 's'},
	{"batch", required_argument, NULL, 'b'},
	{"rows", required_argument, NULL, 'r'},
	{"bytes", no_argument, NULL, 'B'},
	{"group", required_argument, NULL, 'G'},
	{NULL, 0, NULL, 0},
};

static int parse_option(struct top_options *o, int c, char **argv)
{
	unsigned long n;
	int status;

	switch (c) {
	case 'i':
		o->input = optarg;
		return 0;
	case 's':
		o->by = optarg;
		return 0;
	case 'd':
		o->seconds = (double)parse_duration(optarg) / 1e9;
		if (o->seconds >= 0.1 && o->seconds <= 86400)
			return 0;
		return misuse("top", "-d %s: not a time from 0.1 s up; try 2s or 500ms", optarg);
	case 'G':
		for (n = 0; join_groups[n] && strcmp(optarg, join_groups[n]); n++)
			;
		o->group = optarg;
		if (join_groups[n])
			return 0;
		return misuse("top",
			      "--group %s: stack, site, function, file, mapping, process or node",
			      optarg);
	case 'b':
		if (!parse_count(optarg, &o->batch) && o->batch)
			return 0;
		return misuse("top", "--batch %s: not a number of tables", optarg);
	case 'r':
		if (parse_count(optarg, &n))
			return misuse("top", "--rows %s: not a number; 0 shows all", optarg);
		o->rows = (unsigned int)n;
		return 0;
	case 'B':
		o->bytes = 1;
		return 0;
	case 'v':
		session_verbose(1);
		return 0;
	default:
		status = target_option(&o->target, "top", c, optarg);
		return status < 0 ? bad_option("top", longs, argv) : status;
	}
}

static int parse(struct top_options *o, int argc, char **argv)
{
	int c, status;

	while ((c = getopt_long(argc, argv, "+" TARGET_SHORT "i:s:d:v", longs, NULL)) != -1) {
		status = parse_option(o, c, argv);
		if (status)
			return status;
	}
	o->target.argv = optind < argc ? argv + optind : NULL;
	return target_one(&o->target, "top", "-i", o->input != NULL);
}

int top_table(FILE *f, struct report *r, const struct out_opts *o)
{
	int err = join_group(r, o->group);

	if (err)
		return err;
	join_sort(r, o->column);
	return out_table(f, r, o);
}

/* The file's report, with the names asked for. */
static int read_file(const struct top_options *o, struct report **ret_r)
{
	int err = input_join(o->input, OWNER_AUTO, ret_r);

	if (!err && o->target.names.nr)
		join_rules(*ret_r, o->target.names.rules, o->target.names.nr);
	return err;
}

/* A file's report is made again when its rows were grouped or filtered away. */
static int browse(const struct top_options *o, struct screen *s, struct report *r)
{
	enum screen_event e = SCREEN_NOTHING;
	int err = screen_show(s, r, 1);

	top_signals();
	while (!err && e != SCREEN_QUIT && !top_stop) {
		e = screen_keys(s);
		if (e == SCREEN_MARK)
			screen_say(s, "no mark: this is a recording of the past");
		if (e == SCREEN_FRESH) {
			err = read_file(o, &r);
			if (!err)
				err = screen_show(s, r, 1);
		} else if (e == SCREEN_NOTHING) {
			screen_wait();
		}
	}
	return err;
}

static int from_file(const struct top_options *o, const struct out_opts *out)
{
	struct screen *s = NULL;
	struct report *r = NULL;
	int status, err = read_file(o, &r);

	if (err)
		return fail_trace("top", o->input, err);
	status = r->lost ? EXIT_LOSS : 0;
	if (o->screen && strcmp(o->input, "-") && !screen_open(out, o->by != NULL, &s)) {
		err = browse(o, s, r);
		screen_close(&s);
	} else {
		err = top_table(stdout, r, out);
		join_free(&r);
	}
	return err ? fail("top", "%s", strerror(-err)) : status;
}

int cmd_top(int argc, char **argv)
{
	static struct top_options o = {.seconds = 2, .rows = 40, .group = "stack"};
	int columns[COST_MAX + 2];
	struct out_opts out = {.columns = columns};
	int status = parse(&o, argc, argv);

	if (status)
		return status;
	out.column = columns_by("top", o.by ? o.by : o.target.group ? "charged" : NULL);
	if (out.column < 0 || columns_pick("top", NULL, out.column, columns))
		return 1;
	out.group = o.group;
	out.bytes = o.bytes;
	out.rows = o.rows;
	o.screen = !o.batch && isatty(0) && isatty(1);
	if (o.input)
		return from_file(&o, &out);
	if (target_check(&o.target, "top"))
		return 1;
	return top_live(&o, &out);
}
