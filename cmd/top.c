/* SPDX-License-Identifier: GPL-2.0-only
 * top: record and report at once. The trace stays in memory and only what the join keeps of it;
 * every few seconds a picture is taken and the table printed. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/args.h"
#include "cmd/columns.h"
#include "cmd/stop.h"
#include "cmd/target.h"
#include "lib/capture/clock.h"
#include "lib/capture/recorder.h"
#include "lib/capture/session.h"
#include "lib/capture/symbolize.h"
#include "lib/join/live.h"
#include "lib/out/out.h"

#define PICTURE_SHARE 40 /* one part of the time for pictures: 2.5% of a core */

struct options {
	struct target target;
	const char *input, *by;
	double seconds;
	unsigned long batch; /* tables to print, 0: until the end */
	unsigned int rows;
	int bytes, rows_given;
};

struct top {
	const struct options *o;
	struct out_opts out;
	int screen; /* stdout is a terminal to redraw */
	struct trace_writer *w;
	struct recorder *r;
	struct replay *join;
	struct symbolizer *names;
	unsigned long printed;
	u64 unnamed, last_ns, last_cpu_ns, children_ns;
	u64 picture_ns, before_ns; /* when the latest picture was taken, and the one shown before */
	u64 price_ns, next_picture_ns;
	int fresh, unseen; /* a picture is not evaluated yet; no table has it */
	u64 window_ns;
	s64 window_grown, last_resident;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

static int parse_option(struct options *o, int c)
{
	unsigned long n;
	char *end;
	int status;

	switch (c) {
	case 'i':
		o->input = optarg;
		return 0;
	case 's':
		o->by = optarg;
		return 0;
	case 'd':
		o->seconds = strtod(optarg, &end);
		if (end != optarg && !*end && o->seconds >= 0.1 && o->seconds <= 86400)
			return 0;
		return misuse("top", "-d %s: not a number of seconds from 0.1 up", optarg);
	case 'b':
		if (!parse_count(optarg, &o->batch) && o->batch)
			return 0;
		return misuse("top", "--batch %s: not a number of tables", optarg);
	case 'r':
		if (parse_count(optarg, &n))
			return misuse("top", "--rows %s: not a number; 0 shows all", optarg);
		o->rows = (unsigned int)n;
		o->rows_given = 1;
		return 0;
	case 'B':
		o->bytes = 1;
		return 0;
	case 'v':
		session_verbose(1);
		return 0;
	default:
		status = target_option(&o->target, "top", c, optarg);
		return status < 0 ? usage(stderr, "top") : status;
	}
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		TARGET_LONG,
		{"by", required_argument, NULL, 's'},
		{"batch", required_argument, NULL, 'b'},
		{"rows", required_argument, NULL, 'r'},
		{"bytes", no_argument, NULL, 'B'},
		{NULL, 0, NULL, 0},
	};
	int c, status;

	while ((c = getopt_long(argc, argv, "+" TARGET_SHORT "i:s:d:v", longs, NULL)) != -1) {
		status = parse_option(o, c);
		if (status)
			return status;
	}
	o->target.argv = optind < argc ? argv + optind : NULL;
	return target_one(&o->target, "top", "-i", o->input != NULL);
}

static u64 usage_ns(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (u64)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000ull +
	       (u64)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* What top and the readers of names took: all that was waited for, until CMD is. */
static u64 cpu_ns(struct top *t)
{
	if (!t->r || recorder_end(t->r) < 0)
		t->children_ns = usage_ns(RUSAGE_CHILDREN);
	return usage_ns(RUSAGE_SELF) + t->children_ns;
}

/* ---- printing ---- */

/* The reader of a pipe may have had enough: that is no error. */
static int print_table(struct top *t, struct report *r)
{
	int err = join_group(r, t->out.group);

	if (err)
		return err;
	join_sort(r, t->out.column);
	/* Long lines are cut, not wrapped, while the table is drawn. */
	if (t->screen)
		fputs("\033[H\033[2J\033[?7l", stdout);
	else if (t->printed)
		fputc('\n', stdout);
	errno = 0;
	err = out_table(stdout, r, &t->out);
	if (t->screen)
		fputs("\033[?7h", stdout);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	t->printed++;
	return err;
}

/* Table rows that fit between the lines above and below them on a terminal. */
static unsigned int fitting_rows(const struct report *r)
{
	struct winsize size;
	size_t other = 12 + (r->nr_marks < 8 ? r->nr_marks : 9);
	int i;

	for (i = 0; i < MP_LOSS_MAX; i++)
		other += r->losses[i].count != 0;
	if (ioctl(1, TIOCGWINSZ, &size) || size.ws_row < other + 5)
		return 5;
	return size.ws_row - (unsigned int)other;
}

static int show(struct top *t)
{
	u64 now = now_ns(), cpu = cpu_ns(t);
	struct report *r = NULL;
	int err = replay_report(t->join, &r);

	if (err)
		return err;
	r->live.on = recorder_end(t->r) < 0;
	if (r->live.on)
		r->duration_ns = recorder_elapsed_ns(t->r);
	if (t->fresh) {
		s64 resident = cost_value(&r->total[COST_RESIDENT]);

		/* The first window is all there was. */
		t->window_ns = t->picture_ns - t->before_ns;
		t->window_grown = t->printed ? resident - t->last_resident
					     : cost_value(&r->total[COST_GROWN]);
		t->before_ns = t->picture_ns;
		t->last_resident = resident;
		t->fresh = 0;
	}
	r->live.age_ns = r->live.on && t->picture_ns ? now - t->picture_ns : 0;
	r->live.window_ns = t->window_ns;
	r->live.grown = t->window_grown;
	r->live.cpu_ns = now - t->last_ns;
	r->live.cpu = (double)(cpu - t->last_cpu_ns) / (double)(now - t->last_ns);
	t->last_ns = now;
	t->last_cpu_ns = cpu;
	t->out.rows = t->screen && !t->o->rows_given ? fitting_rows(r) : t->o->rows;
	err = print_table(t, r);
	join_free(&r);
	return err;
}

/* ---- following ---- */

static int on_record(void *ctx, const struct mp_hdr *rec)
{
	struct top *t = ctx;
	const char *path = NULL;
	int err;

	if (rec->type == MP_EV_VMA)
		path = trace_writer_string(t->w, trace_body(rec, vma)->name);
	err = symbolizer_feed(t->names, rec, path);
	return err ? err : replay_feed(t->join, rec);
}

static const char *text_of(const void *writer, u32 id)
{
	return trace_writer_string(writer, id);
}

static int catch_up(struct top *t)
{
	u64 unnamed, seq, before;
	int err = recorder_end(t->r) < 0 ? recorder_catch_up(t->r, &seq) : 0;

	/* All there is, once the targets are gone. */
	if (recorder_end(t->r) >= 0)
		seq = ~0ull;
	if (!err)
		err = symbolizer_run(t->names, t->w, &unnamed);
	if (err)
		return err;
	t->unnamed += unnamed;
	before = usage_ns(RUSAGE_SELF);
	err = replay_step(t->join, seq);
	t->price_ns += usage_ns(RUSAGE_SELF) - before;
	return err;
}

/* What a picture and its evaluation took decides when the next may be: names are read only once. */
static int picture(struct top *t)
{
	u64 before = usage_ns(RUSAGE_SELF);
	int err = recorder_picture(t->r);

	t->picture_ns = now_ns();
	t->price_ns = usage_ns(RUSAGE_SELF) - before;
	if (!err)
		err = catch_up(t);
	t->next_picture_ns = t->picture_ns + t->price_ns * PICTURE_SHARE;
	t->fresh = t->unseen = 1;
	return err;
}

static int tick(struct top *t)
{
	int err = now_ns() >= t->next_picture_ns ? picture(t) : catch_up(t);

	t->unseen = 0;
	return err ? err : show(t);
}

/* The targets are gone: their latest picture is the last word. */
static int last_word(struct top *t)
{
	int err = recorder_finish(t->r, NULL);

	if (!err)
		err = catch_up(t);
	return err || (!t->unseen && t->printed) ? err : show(t);
}

/* Tables far apart: the end may come before the next one, which must still get its own picture. */
static int is_old(const struct top *t, u64 now, u64 next)
{
	u64 pause = t->price_ns * PICTURE_SHARE;

	return now >= t->picture_ns + 1000000000ull && now >= t->next_picture_ns &&
	       now + (pause > 500000000ull ? pause : 500000000ull) < next;
}

static int follow(struct top *t)
{
	u64 period = (u64)(t->o->seconds * 1e9), next = now_ns() + period, now;
	int err = t->screen ? tick(t) : 0;

	while (!err && (!t->o->batch || t->printed < t->o->batch)) {
		err = recorder_turn(t->r);
		if (err || recorder_end(t->r) >= 0)
			break;
		now = now_ns();
		if (now < next) {
			err = is_old(t, now, next) ? picture(t) : 0;
			continue;
		}
		err = tick(t);
		next += period;
		if (next < now_ns())
			next = now_ns() + period;
	}
	if (!err && recorder_end(t->r) == MP_END_TARGET)
		err = last_word(t);
	return err;
}

static int run(struct top *t)
{
	int err = recorder_start(t->r);

	target_refused(t->r, "top");
	if (!err && recorder_exec_error(t->r)) {
		fail("top", "%s: %s: check the command's path", t->o->target.argv[0],
		     strerror(recorder_exec_error(t->r)));
		return recorder_status(t->r);
	}
	t->last_ns = t->picture_ns = t->before_ns = now_ns();
	t->last_cpu_ns = cpu_ns(t);
	if (!err)
		err = follow(t);
	if (recorder_end_command(t->r))
		fail("top", "%s (%d) goes on after SIGTERM: end it yourself", t->o->target.argv[0],
		     (int)recorder_pid(t->r));
	if (err == -EPIPE) {
		__fpurge(stdout);
		clearerr(stdout);
		err = 0;
	}
	if (err == -EPERM)
		return fail_frames("top");
	if (err)
		return fail("top", "%s", strerror(-err));
	if (t->unnamed)
		fail("top",
		     "%llu addresses have no name: reading their file crashed or took too long",
		     (unsigned long long)t->unnamed);
	if (recorder_status(t->r))
		return recorder_status(t->r);
	return recorder_lost(t->r) ? EXIT_LOSS : 0;
}

static int live(struct top *t)
{
	const struct recorder_opts ropts = {
		.pids = t->o->target.pids,
		.nr_pids = t->o->target.nr_pids,
		.tree = t->o->target.tree,
		.group = t->o->target.group,
		.argv = t->o->target.argv,
		.user = t->o->target.user,
		.live = 1,
		.stop = &stop,
	};
	struct sigaction sa = {.sa_handler = on_signal};
	char msg[256] = "";
	int err = symbolizer_new(&t->names), status = 1;

	if (!err)
		err = trace_writer_sink(on_record, t, &t->w);
	if (!err)
		err = replay_new(OWNER_AUTO, text_of, t->w, &t->join);
	if (!err)
		err = recorder_open(&ropts, t->w, msg, sizeof(msg), &t->r);
	if (err) {
		fail("top", "%s", msg[0] ? msg : strerror(-err));
	} else {
		stop_by_signal(&sa);
		/* CMD was forked before: it keeps the default. */
		signal(SIGPIPE, SIG_IGN);
		status = run(t);
	}
	recorder_free(&t->r);
	replay_free(&t->join);
	symbolizer_free(&t->names);
	trace_writer_close(&t->w);
	return status;
}

static int from_file(struct top *t)
{
	struct report *r = NULL;
	int status, err = input_join(t->o->input, OWNER_AUTO, &r);

	if (err)
		return fail_trace("top", t->o->input, err);
	status = r->lost ? EXIT_LOSS : 0;
	err = print_table(t, r);
	join_free(&r);
	return err ? fail("top", "cannot write: %s", strerror(-err)) : status;
}

int cmd_top(int argc, char **argv)
{
	static struct options o = {.seconds = 2, .rows = 40};
	int columns[COST_MAX + 2];
	struct top t = {.o = &o, .out = {.columns = columns, .group = "stack"}};
	int status = parse(&o, argc, argv);

	if (status)
		return status;
	t.out.column = columns_by("top", o.by ? o.by : o.target.group ? "charged" : NULL);
	if (t.out.column < 0 || columns_pick("top", NULL, t.out.column, columns))
		return 1;
	t.out.bytes = o.bytes;
	t.out.rows = o.rows;
	if (o.input)
		return from_file(&t);
	if (target_check(&o.target, "top"))
		return 1;
	t.screen = !o.batch && isatty(1);
	return live(&t);
}
