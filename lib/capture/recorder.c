/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/capture/group.h"
#include "lib/capture/mark.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/privilege.h"
#include "lib/capture/recorder.h"
#include "lib/capture/selftest.h"
#include "lib/capture/session.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/spawn.h"
#include "lib/capture/symbolize.h"

#define MAX_SPACES 4096

struct recorder {
	const struct recorder_opts *o;
	struct trace_writer *w;
	struct session *s;
	struct mark_port *marks; /* NULL: none can be set */
	u32 walk;
	struct shot {
		u32 space;
		struct snapshot *shot; /* the latest, not yet written */
	} * pictures;
	struct pagewalk *walker; /* NULL: pagemap */
	char no_walker[256]; /* why */
	struct selftest test;
	u32 nr_pictures;
	u64 resident; /* in the latest walk */
	pid_t refused_pid; /* the first of them */
	u32 refused; /* pictures the kernel refused: a protected process */
	u64 put_ns; /* time of the latest record put here */
	u64 began_ns, ended_ns; /* the recorded time; 0: not yet */
	u64 next_walk_ns, walk_cost_ns, first_ns, last_ns, names_ns;
	pid_t child;
	int child_status, exec_error, end, reaped;
	u64 unnamed;
	int go_fd, err_fd; /* wakes the child; its exec error comes back */
};

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

static int put(struct recorder *r, u16 type, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[64];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .seq = r->s ? session_seq(r->s) : 0,
			 .time_ns = now_ns()}};

	r->put_ns = rec.hdr.time_ns;
	memcpy(rec.body, body, len);
	return trace_write(r->w, &rec.hdr);
}

static int put_hook(struct recorder *r, const char *cap, const char *provider, const char *level,
		    const char *reason)
{
	struct mp_ev_hook h = {
		.capability = (u32)trace_string(r->w, cap),
		.provider = (u32)trace_string(r->w, provider),
		.stability = (u32)trace_string(r->w, level),
		.reason = (u32)trace_string(r->w, reason),
	};

	return put(r, MP_EV_HOOK, &h, sizeof(h));
}

/* MEMPROV_WALK=pagemap in the environment takes the second row of the table (tests do). */
static void choose_walk(struct recorder *r)
{
	const char *want = getenv("MEMPROV_WALK");

	if (session_blind(r->s))
		return;
	if (group_pages(r->o->group))
		snprintf(r->no_walker, sizeof(r->no_walker),
			 "a cgroup is recorded: whose a page is has to be asked by frame");
	else if (want && !strcmp(want, "pagemap"))
		snprintf(r->no_walker, sizeof(r->no_walker), "MEMPROV_WALK asked for it");
	else
		pagewalk_open(r->no_walker, sizeof(r->no_walker), &r->walker);
}

static int put_session(struct recorder *r)
{
	struct mp_ev_session s = {.page_size = MP_PAGE_SIZE};
	struct utsname u;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	uname(&u);
	s.start_realtime = (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
	s.host = (u32)trace_string(r->w, u.nodename);
	s.kernel = (u32)trace_string(r->w, u.release);
	s.arch = (u32)trace_string(r->w, u.machine);
	s.nr_cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	return put(r, MP_EV_SESSION, &s, sizeof(s));
}

/* reason: why a session without privilege is blind. */
static int put_hooks(struct recorder *r, const char *reason)
{
	const char *no_map = NULL, *no_fault = NULL;
	int hidden = privilege_missing(NEED_ADMIN), err;

	if (session_blind(r->s)) {
		no_map = no_fault = reason;
	} else {
		no_map = r->test.wrong[SELFTEST_MAP][0] ? r->test.wrong[SELFTEST_MAP] : NULL;
		no_fault = r->test.wrong[SELFTEST_FAULT][0] ? r->test.wrong[SELFTEST_FAULT] : NULL;
	}
	if (no_fault && !session_blind(r->s))
		session_drop_faults(r->s);
	err = put_hook(r, "map", no_map ? NULL : "sys_enter/exit", no_map ? NULL : "tracepoint",
		       no_map);
	if (!err)
		err = put_hook(r, "fault", no_fault ? NULL : "tracepoint machine",
			       no_fault ? NULL : "tracepoint",
			       no_fault ? no_fault
					: "flows are inferred: no function hooks in this version");
	if (!err)
		err = r->walker ? put_hook(r, "snapshot", "BPF page-table walk", "BTF field", NULL)
		      : hidden	? put_hook(r, "snapshot", "pagemap, no frames", "UAPI",
					   "CAP_SYS_ADMIN missing: pss, unique and shared unknown")
				: put_hook(r, "snapshot", "pagemap", "UAPI", r->no_walker);
	if (!err)
		err = put_hook(r, "alloc", NULL, NULL, "no allocator probe: owners are mappings");
	return err;
}

static u64 seq_of(void *s)
{
	return session_seq(s);
}

static u64 map_ops_of(void *s, u32 space)
{
	return session_map_ops(s, space);
}

static struct shot *picture_of(struct recorder *r, u32 space)
{
	u32 i;

	for (i = 0; i < r->nr_pictures; i++)
		if (r->pictures[i].space == space)
			return &r->pictures[i];
	if (r->nr_pictures == MAX_SPACES)
		return NULL;
	r->pictures[r->nr_pictures].space = space;
	return &r->pictures[r->nr_pictures++];
}

static int take(void *ctx, pid_t pid, u32 space)
{
	struct recorder *r = ctx;
	struct shot *p = picture_of(r, space);
	const struct snapshot_env env = {
		.w = r->w,
		.walker = r->walker,
		.seq = seq_of,
		.map_ops = map_ops_of,
		.charged = group_pages(r->o->group),
		.by_counters = r->o->live,
		.ctx = r->s,
	};
	struct snapshot *shot;
	int err;

	if (!p)
		return 0;
	err = snapshot_take(&env, pid, space, r->walk, &shot);
	if (err == -ESRCH || err == -ENOENT)
		return 0; /* it went while we looked */
	if (err == -EACCES) {
		if (!r->refused++)
			r->refused_pid = pid;
		return 0;
	}
	if (err)
		return err;
	snapshot_free(&p->shot);
	p->shot = shot;
	r->resident += snapshot_resident(shot);
	r->walk_cost_ns += snapshot_cost_ns(shot);
	if (r->o->progress && r->began_ns)
		r->o->progress(r->o->progress_ctx);
	/* Of many processes, those that wait for theirs fill the rings. */
	return session_poll(r->s, 0);
}

/* Somebody came into the cgroup otherwise than as a child of its processes. */
static int adopt(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;
	s64 space = session_has(r->s, pid) ? 0 : session_add(r->s, pid);

	return space < 0 ? (int)space : 0;
}

static int take_all(struct recorder *r)
{
	u64 period;
	int err = 0;

	r->walk_cost_ns = r->resident = 0;
	if (r->o->group)
		err = group_round(r->o->group);
	if (!err && r->o->group)
		err = group_each(r->o->group, adopt, r);
	if (!err)
		err = session_each(r->s, take, r);
	/* At most 2% of a core for the rolling picture. */
	period = r->walk_cost_ns * 50;
	r->next_walk_ns = now_ns() + (period > 1000000000ull ? period : 1000000000ull);
	return err;
}

static int by_time(const void *a, const void *b)
{
	const struct shot *x = a, *y = b;
	u64 s = x->shot ? snapshot_time_ns(x->shot) : 0,
	    t = y->shot ? snapshot_time_ns(y->shot) : 0;

	return s < t ? -1 : s > t;
}

/* In the order they were taken, so that no two of them interleave for the reader. */
static int write_pictures(struct recorder *r)
{
	u32 i;
	int err = 0;

	qsort(r->pictures, r->nr_pictures, sizeof(*r->pictures), by_time);
	for (i = 0; i < r->nr_pictures && !err; i++) {
		if (r->pictures[i].shot)
			err = snapshot_write(r->pictures[i].shot, r->w);
		snapshot_free(&r->pictures[i].shot);
	}
	return err;
}

static int alive(struct recorder *r)
{
	if (r->child) {
		r->reaped = waitpid(r->child, &r->child_status, WNOHANG) == r->child;
		return !r->reaped;
	}
	return session_alive(r->s);
}

static int put_file_full(struct recorder *r)
{
	struct mp_ev_loss loss = {
		.count = 1,
		.cause = MP_LOSS_FILE_FULL,
		.cls = MP_CLASS_MAX,
	};

	return put(r, MP_EV_LOSS, &loss, sizeof(loss));
}

/* The write end of the pipe closes by itself when the exec succeeds. */
static void await_exec(struct recorder *r)
{
	char c;

	if (read(r->err_fd, &c, 1) != 1)
		return;
	r->reaped = waitpid(r->child, &r->child_status, 0) == r->child;
	r->exec_error = c;
}

/* In the file before it is confirmed. */
static int put_mark(void *ctx, const char *text, u64 *ret_time_ns)
{
	struct recorder *r = ctx;
	struct mp_ev_mark m = {0};
	s64 id = trace_string(r->w, text);
	int err;

	if (id < 0)
		return (int)id;
	m.text = (u32)id;
	err = put(r, MP_EV_MARK, &m, sizeof(m));
	*ret_time_ns = r->put_ns - r->began_ns;
	return err ? err : trace_writer_flush(r->w);
}

static int take_marks(struct recorder *r)
{
	return r->marks ? mark_poll(r->marks, put_mark, r) : 0;
}

int recorder_open(const struct recorder_opts *o, struct trace_writer *w, char *msg, size_t msg_len,
		  struct recorder **ret_r)
{
	const struct session_opts so = {.follow = o->tree || o->argv,
					.ring_bytes = o->ring_bytes,
					.may_be_blind = o->may_be_blind};
	struct recorder *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return err;
	r->o = o;
	r->w = w;
	r->end = -1;
	r->go_fd = r->err_fd = -1;
	r->pictures = calloc(MAX_SPACES, sizeof(*r->pictures));
	if (r->pictures)
		err = put_session(r);
	if (!err)
		err = session_open(w, &so, msg, msg_len, &r->s);
	if (!err && !session_blind(r->s))
		err = selftest_run(r->s, &r->test);
	if (!err) {
		choose_walk(r);
		err = put_hooks(r, msg);
	}
	/* Whoever sits on the name keeps marks out, not the recording. */
	if (!err && mark_open(o->path, &r->marks))
		r->marks = NULL;
	if (!err && o->argv) {
		r->child = spawn(o->argv, &o->user, &r->go_fd, &r->err_fd);
		if (r->child < 0) {
			err = r->child;
			snprintf(msg, msg_len, "cannot start %s: %s", o->argv[0], strerror(-err));
		}
	}
	if (err)
		recorder_free(&r);
	else
		*ret_r = r;
	return err;
}

static int add_all(struct recorder *r)
{
	int i, err = 0;
	s64 space;

	for (i = 0; i < r->o->nr_pids && !err; i++) {
		if (snapshot_thread(r->o->pids[i]) <= 0)
			continue; /* gone since it was listed */
		space = session_add(r->s, r->o->pids[i]);
		err = space < 0 ? (int)space : 0;
	}
	if (!err && r->child) {
		space = session_add(r->s, r->child);
		err = space < 0 ? (int)space : 0;
	}
	return err;
}

static int put_group(struct recorder *r)
{
	struct group *g = r->o->group;
	int err = put_hook(r, "cgroup", group_pages(g) ? "kpagecgroup" : NULL, "documented ABI",
			   group_pages_reason(g));

	return err ? err : group_write(g, MP_CGROUP_START, 0, session_seq(r->s), r->w);
}

static int put_window(struct recorder *r, u32 end)
{
	const struct mp_ev_window ev = {.end = end};
	int err = put(r, MP_EV_WINDOW, &ev, sizeof(ev));

	*(end ? &r->ended_ns : &r->began_ns) = r->put_ns;
	return err;
}

int recorder_start(struct recorder *r)
{
	u64 started;
	int err = add_all(r);

	if (!err && r->o->group)
		err = put_group(r);
	if (err)
		return err;
	if (!r->child) {
		r->walk++;
		started = now_ns();
		err = take_all(r);
		r->first_ns = now_ns() - started;
		if (!err && r->refused && (!r->nr_pictures || r->refused >= r->nr_pictures))
			err = -EACCES;
		if (!err)
			err = write_pictures(r);
		if (!err)
			err = put_window(r, 0);
		/* A recorder killed from now on leaves a picture. */
		return err ? err : trace_writer_flush(r->w);
	}
	err = put_window(r, 0);
	if (err)
		return err;
	if (write(r->go_fd, "g", 1) != 1)
		return -errno;
	await_exec(r);
	return 0;
}

/* One that would not be ready in time is left to the last picture. */
static int picture_due(const struct recorder *r, u64 now)
{
	u64 until = r->began_ns + r->o->duration_ns;

	return !r->o->live && now >= r->next_walk_ns &&
	       !(r->o->duration_ns && now + r->walk_cost_ns > until);
}

/* At most 50 ms, and not past the end of the recorded time. */
static int pause_ms(const struct recorder *r, u64 now)
{
	u64 left = r->o->duration_ns ? r->began_ns + r->o->duration_ns - now : ~0ull;

	return left < 50000000 ? (int)(left / 1000000) + 1 : 50;
}

int recorder_turn(struct recorder *r)
{
	u64 now = now_ns();
	int err;

	if (*r->o->stop)
		r->end = MP_END_SIGNAL;
	else if (r->o->duration_ns && now - r->began_ns >= r->o->duration_ns)
		r->end = MP_END_DURATION;
	else if (!alive(r))
		r->end = MP_END_TARGET;
	err = r->end >= 0 ? put_window(r, 1) : session_poll(r->s, pause_ms(r, now));
	if (!err)
		err = take_marks(r);
	if (!err && r->end < 0 && picture_due(r, now)) {
		r->walk++;
		err = take_all(r);
		if (!err)
			err = trace_writer_flush(r->w);
	}
	if (err == -EFBIG) {
		r->end = MP_END_SIZE;
		err = 0;
	}
	return err;
}

/* The cgroup's figures before and after it: at its time, not at another. */
static int last_picture(struct recorder *r)
{
	struct group *g = r->o->group;
	int err = g ? group_write(g, MP_CGROUP_BEFORE, 0, session_seq(r->s), r->w) : 0;

	if (!err)
		err = take_all(r);
	if (!err && g)
		err = group_write(g, MP_CGROUP_AFTER, !r->o->live, session_seq(r->s), r->w);
	return err;
}

int recorder_catch_up(struct recorder *r, u64 *ret_seq)
{
	struct group *g = r->o->group;
	int err = g ? group_write(g, MP_CGROUP_NOW, 0, session_seq(r->s), r->w) : 0;

	*ret_seq = session_seq(r->s);
	if (!err)
		err = session_write_losses(r->s);
	/* What drew a number before is on its way for microseconds. */
	if (!err)
		err = session_poll(r->s, 10);
	return err ? err : session_poll(r->s, 10);
}

int recorder_picture(struct recorder *r)
{
	int err;

	r->walk++;
	err = last_picture(r);
	if (!err)
		err = write_pictures(r);
	r->nr_pictures = 0;
	return err;
}

int recorder_finish(struct recorder *r, const char *path)
{
	struct mp_ev_end end = {0};
	u64 started = now_ns();
	int err;

	r->walk++;
	err = r->end == MP_END_TARGET || r->end == MP_END_SIZE ? 0 : last_picture(r);
	r->last_ns = now_ns() - started;
	/* Calls whose effect the picture shows return, and say whose they are. */
	if (!err)
		err = session_poll(r->s, 20);
	if (!err)
		err = take_marks(r);
	mark_close(&r->marks);
	if (!err || err == -EFBIG) {
		int stopped = session_stop(r->s);

		err = err ? err : stopped;
	}
	if (!err || err == -EFBIG)
		err = write_pictures(r);
	if (!err)
		err = trace_writer_flush(r->w);
	started = now_ns();
	if (!err && path)
		err = symbolize(path, r->w, &r->unnamed);
	r->names_ns = now_ns() - started;
	/* The writer keeps room for these two behind a full file. */
	if (err == -EFBIG) {
		r->end = MP_END_SIZE;
		err = put_file_full(r);
	}
	end.reason = (u64)r->end;
	if (!err)
		err = put(r, MP_EV_END, &end, sizeof(end));
	return err;
}

int recorder_end_command(struct recorder *r)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	u64 until = now_ns() + 10000000000ull;
	int status;

	if (!r->child || r->reaped)
		return 0;
	kill(r->child, SIGTERM);
	while (waitpid(r->child, &status, WNOHANG) != r->child) {
		if (now_ns() > until)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	r->reaped = 1;
	return 0;
}

void recorder_free(struct recorder **r)
{
	u32 i;

	if (!r || !*r)
		return;
	for (i = 0; (*r)->pictures && i < (*r)->nr_pictures; i++)
		snapshot_free(&(*r)->pictures[i].shot);
	pagewalk_close(&(*r)->walker);
	free((*r)->pictures);
	mark_close(&(*r)->marks);
	session_free(&(*r)->s);
	if ((*r)->go_fd >= 0)
		close((*r)->go_fd);
	if ((*r)->err_fd >= 0)
		close((*r)->err_fd);
	free(*r);
	*r = NULL;
}

int recorder_end(const struct recorder *r)
{
	return r->end;
}

pid_t recorder_pid(const struct recorder *r)
{
	return r->child ? r->child : r->o->pids[0];
}

int recorder_exec_error(const struct recorder *r)
{
	return r->exec_error;
}

int recorder_status(const struct recorder *r)
{
	if (!r->child || (r->end != MP_END_TARGET && !r->exec_error))
		return 0;
	return WIFSIGNALED(r->child_status) ? 128 + WTERMSIG(r->child_status)
					    : WEXITSTATUS(r->child_status);
}

unsigned int recorder_refused(const struct recorder *r, pid_t *ret_first)
{
	*ret_first = r->refused_pid;
	return r->refused;
}

u64 recorder_elapsed_ns(const struct recorder *r)
{
	return (r->ended_ns ? r->ended_ns : now_ns()) - r->began_ns;
}

u64 recorder_resident(const struct recorder *r)
{
	return r->resident;
}

int recorder_has_picture(const struct recorder *r)
{
	u32 i;

	for (i = 0; i < r->nr_pictures; i++)
		if (r->pictures[i].shot)
			return 1;
	return 0;
}

u64 recorder_events(const struct recorder *r)
{
	return session_events(r->s);
}

u64 recorder_lost(const struct recorder *r)
{
	return session_lost(r->s);
}

u64 recorder_unnamed(const struct recorder *r)
{
	return r->unnamed;
}

u64 recorder_map_bytes(const struct recorder *r)
{
	return session_map_bytes(r->s);
}

u64 recorder_picture_ns(const struct recorder *r)
{
	return r->walk_cost_ns;
}

u64 recorder_first_ns(const struct recorder *r)
{
	return r->first_ns;
}

u64 recorder_last_ns(const struct recorder *r)
{
	return r->last_ns;
}

u64 recorder_names_ns(const struct recorder *r)
{
	return r->names_ns;
}

u64 recorder_lost_rings(const struct recorder *r)
{
	return session_lost_rings(r->s);
}
