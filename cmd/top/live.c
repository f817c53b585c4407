/* SPDX-License-Identifier: GPL-2.0-only
 * A recording that is reported while it goes on. The trace stays in memory and only what the join
 * keeps of it; every few seconds a picture is taken and shown. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "cmd/cmd.h"
#include "cmd/top/top.h"
#include "lib/capture/clock.h"
#include "lib/capture/recorder.h"
#include "lib/capture/session.h"
#include "lib/capture/symbolize.h"
#include "lib/join/live.h"

#define PICTURE_SHARE 40 /* one part of the time for pictures: 2.5% of a core */

struct top {
	const struct top_options *o;
	struct out_opts out;
	struct screen *screen; /* NULL: tables */
	int quit; /* the user has seen enough */
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

/* ---- showing ---- */

/* The reader of a pipe may have had enough: that is no error. */
static int print_table(struct top *t, struct report *r)
{
	int err;

	if (t->printed)
		fputc('\n', stdout);
	errno = 0;
	err = top_table(stdout, r, &t->out);
	if (!err && (fflush(stdout) || ferror(stdout)))
		err = errno ? -errno : -EIO;
	return err;
}

static int show(struct top *t)
{
	u64 now = now_ns(), cpu = cpu_ns(t);
	struct report *r = NULL;
	int err = replay_report(t->join, &r), is_new = t->fresh;

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
	if (t->screen) {
		err = screen_show(t->screen, r, is_new);
	} else {
		err = print_table(t, r);
		join_free(&r);
	}
	t->printed++;
	return err;
}

/* What was typed, and what it asks for. */
static int keys(struct top *t)
{
	int err = 0;

	switch (screen_keys(t->screen)) {
	case SCREEN_QUIT:
		t->quit = 1;
		break;
	case SCREEN_FRESH:
		err = show(t);
		break;
	case SCREEN_MARK:
		if (recorder_end(t->r) >= 0)
			screen_say(t->screen, "no mark: the recording has ended");
		else
			err = recorder_mark(t->r, screen_mark(t->screen));
		if (!err && recorder_end(t->r) < 0)
			screen_say(t->screen, "marked: %s", screen_mark(t->screen));
		break;
	default:
		break;
	}
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

	if (err || (t->screen && screen_is_paused(t->screen)))
		return err;
	t->unseen = 0;
	return show(t);
}

/* The targets are gone: their latest picture is the last word. */
static int last_word(struct top *t)
{
	int err = recorder_finish(t->r, NULL);

	if (!err)
		err = catch_up(t);
	return err || (!t->unseen && t->printed && !t->screen) ? err : show(t);
}

/* What the targets had stays on the screen. */
static int linger(struct top *t)
{
	int err = 0;

	screen_say(t->screen, "the targets have ended: q leaves");
	while (!err && !t->quit && !top_stop) {
		err = keys(t);
		if (!err && !t->quit)
			screen_wait();
	}
	return err;
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
		err = t->screen ? keys(t) : 0;
		if (!err && !t->quit)
			err = recorder_turn(t->r);
		if (err || t->quit || recorder_end(t->r) >= 0)
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
	if (!err && !t->quit && recorder_end(t->r) == MP_END_TARGET) {
		err = last_word(t);
		if (!err && t->screen)
			err = linger(t);
	}
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
	if (!err && t->o->screen) {
		err = screen_open(&t->out, t->o->by != NULL, &t->screen);
		/* A terminal that cannot be drawn on gets tables. */
		err = err == -ENOTTY ? 0 : err;
	}
	if (!err)
		err = follow(t);
	screen_close(&t->screen);
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

int top_live(const struct top_options *o, const struct out_opts *out)
{
	struct top top = {.o = o, .out = *out}, *t = &top;
	const struct recorder_opts ropts = {
		.pids = t->o->target.pids,
		.nr_pids = t->o->target.nr_pids,
		.tree = t->o->target.tree,
		.group = t->o->target.group,
		.argv = t->o->target.argv,
		.user = t->o->target.user,
		.alloc = {.mode = ALLOC_MAP},
		.rules = t->o->target.names.rules,
		.nr_rules = t->o->target.names.nr,
		.live = 1,
		.stop = &top_stop,
	};
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
		top_signals();
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
