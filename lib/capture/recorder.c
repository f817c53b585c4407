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
#include "lib/capture/accessed.h"
#include "lib/capture/allocs.h"
#include "lib/capture/clock.h"
#include "lib/capture/flight.h"
#include "lib/capture/group.h"
#include "lib/capture/life.h"
#include "lib/capture/import.h"
#include "lib/capture/mark.h"
#include "lib/capture/pictures.h"
#include "lib/capture/privilege.h"
#include "lib/capture/python.h"
#include "lib/capture/recorder.h"
#include "lib/capture/resources.h"
#include "lib/capture/selftest.h"
#include "lib/capture/session.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/spawn.h"
#include "lib/capture/supply.h"
#include "lib/capture/symbolize.h"
#include "lib/capture/tree.h"
#include "lib/capture/unwinder.h"

struct recorder {
	const struct recorder_opts *o;
	struct trace_writer *w;
	struct session *s;
	struct unwinder *unwind; /* NULL: nothing is loaded */
	struct allocs_opts alloc_opts;
	struct allocs *allocs;
	struct resources *resources; /* NULL: nothing is loaded */
	struct python *python; /* the same */
	struct mark_port *marks; /* NULL: none can be set */
	struct pictures *pictures;
	struct accessed *accessed; /* NULL: accessed bits are left alone */
	char not_accessed[128]; /* why, when they should not */
	char not_imported[128]; /* why samples are not there */
	u64 next_clear_ns;
	struct selftest test;
	u64 put_ns; /* time of the latest record put here */
	u64 began_ns, ended_ns; /* the recorded time; 0: not yet */
	u64 next_walk_ns, written_ns, first_ns, last_ns, names_ns;
	pid_t child;
	int child_status, exec_error, end, reaped;
	u64 unnamed;
	struct trigger_cause cause; /* of a flight recorder's latest file */
	unsigned int written;
	int go_fd, err_fd; /* wakes the child; its exec error comes back */
};

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

static int put_alloc_hook(struct recorder *r)
{
	const char *stability, *reason, *provider;

	provider = allocs_provider(r->allocs, &stability, &reason);
	return put_hook(r, "alloc", provider, stability, reason);
}

static int put_touch_hook(struct recorder *r)
{
	if (!r->o->accessed)
		return 0;
	if (!r->accessed)
		return put_hook(r, "touch", NULL, NULL, r->not_accessed);
	return put_hook(r, "touch", "accessed bits", "BTF field", accessed_unproven(r->accessed));
}

static int put_rules(struct recorder *r)
{
	size_t i;
	int err = 0;

	for (i = 0; i < r->o->nr_rules && !err; i++) {
		const struct name_rule *rule = &r->o->rules[i];
		struct mp_ev_name_rule ev = {
			.name = (u32)trace_string(r->w, rule->name),
			.kind = rule->by,
			.pattern = (u32)trace_string(r->w, rule->pattern),
		};

		err = put(r, MP_EV_NAME_RULE, &ev, sizeof(ev));
	}
	return err;
}

/* What becomes of pages; without faults there is nothing to compare it with. */
static int put_life_hooks(struct recorder *r, const char *no_fault)
{
	struct life *l = session_life(r->s);
	const char *cap, *provider, *level, *why;
	u64 vmemmap = 0, mask = 0;
	int i, err = 0;

	if (l) {
		why = pictures_frames(r->pictures, &vmemmap, &mask);
		if (why)
			life_drop(l, LIFE_MIGRATE, why);
		else
			session_frames(r->s, vmemmap, mask);
		if (session_counters_late(r->s))
			life_no_swap_in(l);
	}
	for (i = 0; i < LIFE_HOOKS && !err; i++) {
		why = life_hook(l, (enum life_hook)i, &cap, &provider, &level);
		why = no_fault ? no_fault : why;
		err = put_hook(r, cap, why ? NULL : provider, why ? NULL : level, why);
	}
	return err;
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
			       : session_counters_late(r->s)
				       ? "flows are inferred: no function hooks in this version; "
					 "faults on pages that are in the page cache are not seen"
				       : "flows are inferred: no function hooks in this version");
	if (!err)
		err = pictures_by_walk(r->pictures)
			      ? put_hook(r, "snapshot", "BPF page-table walk", "BTF field", NULL)
		      : hidden ? put_hook(r, "snapshot", "pagemap, no frames", "UAPI",
					  "CAP_SYS_ADMIN missing: pss, unique and shared unknown")
			       : put_hook(r, "snapshot", "pagemap", "UAPI",
					  pictures_no_walker(r->pictures));
	if (!err)
		err = put_touch_hook(r);
	if (!err)
		err = put_rules(r);
	if (!err)
		err = put_life_hooks(r, no_fault);
	return err ? err : put_alloc_hook(r);
}

static int alive(struct recorder *r)
{
	if (r->child) {
		r->reaped = waitpid(r->child, &r->child_status, WNOHANG) == r->child;
		return !r->reaped;
	}
	/* A group that has no process yet may get some. */
	return session_alive(r->s) || (r->o->group && !r->o->nr_pids);
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

int recorder_mark(struct recorder *r, const char *text)
{
	u64 at;

	return put_mark(r, text, &at);
}

static int take_marks(struct recorder *r)
{
	return r->marks ? mark_poll(r->marks, put_mark, r) : 0;
}

/* Without privilege there is no walk that could read them, and with --cgroup none is taken. */
static int open_accessed(struct recorder *r)
{
	int err;

	if (!r->o->accessed)
		return 0;
	if (session_blind(r->s) || r->o->group) {
		snprintf(r->not_accessed, sizeof(r->not_accessed), "%s",
			 r->o->group ? "a cgroup is recorded, whose pages are asked for by frame"
				     : "the page tables cannot be read");
		return 0;
	}
	err = accessed_open(r->not_accessed, sizeof(r->not_accessed), &r->accessed);
	return err == -ENOMEM ? err : 0;
}

static int open_pictures(struct recorder *r)
{
	struct pictures_opts o = {
		.w = r->w,
		.s = r->s,
		.group = r->o->group,
		.live = r->o->live,
		.accessed = r->accessed,
	};
	int err = pictures_new(&o, &r->pictures);

	if (!err && r->accessed && !pictures_by_walk(r->pictures)) {
		snprintf(r->not_accessed, sizeof(r->not_accessed), "%.127s",
			 pictures_no_walker(r->pictures));
		pictures_free(&r->pictures);
		accessed_free(&r->accessed);
		o.accessed = NULL;
		err = pictures_new(&o, &r->pictures);
	}
	return err;
}

static int take_all(struct recorder *r)
{
	int err =
		pictures_take(r->pictures, r->began_ns ? r->o->progress : NULL, r->o->progress_ctx);
	/* At most 2% of a core for the rolling picture. */
	u64 period = pictures_cost_ns(r->pictures) * 50;

	r->next_walk_ns = now_ns() + (period > 1000000000ull ? period : 1000000000ull);
	return err;
}

static int open_allocs(struct recorder *r, char *msg, size_t msg_len)
{
	r->alloc_opts = r->o->alloc;
	r->alloc_opts.argv = r->o->argv;
	r->alloc_opts.user = &r->o->user;
	r->alloc_opts.pids = r->o->pids;
	r->alloc_opts.nr_pids = r->o->nr_pids;
	r->alloc_opts.ring_bytes = r->o->ring_bytes;
	return allocs_open(r->s, &r->alloc_opts, msg, msg_len, &r->allocs);
}

static int start_command(struct recorder *r, char *msg, size_t msg_len)
{
	const struct spawn_command cmd = {
		.argv = r->o->argv,
		.user = &r->o->user,
		.env = allocs_env(r->allocs),
	};

	r->child = spawn(&cmd, &r->go_fd, &r->err_fd);
	if (r->child < 0)
		snprintf(msg, msg_len, "cannot start %s: %s", cmd.argv[0], strerror(-r->child));
	return r->child < 0 ? r->child : 0;
}

static int watch_flight(void *recorder, const struct mp_hdr *rec)
{
	const struct recorder *r = recorder;

	triggers_feed(flight_triggers(r->o->flight), rec);
	return 0;
}

int recorder_open(const struct recorder_opts *o, struct trace_writer *w, char *msg, size_t msg_len,
		  struct recorder **ret_r)
{
	const struct session_opts so = {.follow = o->tree || o->argv,
					.ring_bytes = o->ring_bytes,
					.may_be_blind = o->may_be_blind};
	struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->o = o;
	r->w = w;
	r->end = -1;
	r->go_fd = r->err_fd = -1;
	err = put_session(r);
	if (!err)
		err = session_open(w, &so, msg, msg_len, &r->s);
	if (!err && !session_blind(r->s))
		err = selftest_run(r->s, &r->test);
	if (!err && !session_blind(r->s))
		err = supply_open(r->s, &r->unwind);
	if (!err && !session_blind(r->s))
		err = resources_open(r->s, &r->resources);
	if (!err && o->flight)
		session_watch(r->s, watch_flight, r);
	if (!err && !session_blind(r->s))
		err = python_open(r->s, r->w, &r->python);
	if (!err)
		err = open_allocs(r, msg, msg_len);
	if (!err)
		err = open_accessed(r);
	if (!err)
		err = open_pictures(r);
	if (!err)
		err = put_hooks(r, msg);
	/* Whoever sits on the name keeps marks out, not the recording. */
	if (!err && mark_open(o->path, &r->marks))
		r->marks = NULL;
	if (!err && o->argv)
		err = start_command(r, msg, msg_len);
	if (!err && o->flight)
		err = triggers_open(flight_triggers(o->flight), o->group, recorder_pid(r), msg,
				    msg_len);
	if (err)
		recorder_free(&r);
	else
		*ret_r = r;
	return err;
}

static int follow(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;
	pid_t parent = tree_parent(pid);
	s64 space;

	if (snapshot_thread(pid) <= 0)
		return 0; /* gone since it was listed */
	if (parent > 0 && session_has(r->s, parent) && tree_same_memory(pid, parent))
		return session_join(r->s, pid, parent);
	space = session_add(r->s, pid);
	return space < 0 ? (int)space : 0;
}

/* Who shares a target's memory maps and unmaps in it: it is followed, whether children are wanted
 * or not. */
static int follow_child(void *ctx, pid_t pid)
{
	struct recorder *r = ctx;
	int wanted = r->o->tree && !r->o->group;

	if (pid == getpid())
		return 0;
	return wanted || tree_same_memory(pid, tree_parent(pid)) ? follow(ctx, pid) : 0;
}

static int is_followed(void *ctx, pid_t pid)
{
	return session_has(((struct recorder *)ctx)->s, pid);
}

static int add_all(struct recorder *r)
{
	int i, err = 0;

	for (i = 0; i < r->o->nr_pids && !err; i++)
		err = follow(r, r->o->pids[i]);
	if (!err && r->child)
		err = follow(r, r->child);
	/* Children born from now on tell themselves. */
	return err ? err : tree_each(is_followed, follow_child, r);
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
	r->next_clear_ns = r->put_ns + r->o->every_ns;
	return err;
}

static int all_refused(const struct recorder *r)
{
	pid_t first;
	unsigned int refused = pictures_refused(r->pictures, &first);

	return refused && refused >= pictures_spaces(r->pictures);
}

static void note_not_accessed(struct recorder *r)
{
	pid_t pid = pictures_not_cleared(r->pictures);

	if (pid)
		snprintf(r->not_accessed, sizeof(r->not_accessed),
			 "another memprov reads those of %d", (int)pid);
}

int recorder_start(struct recorder *r)
{
	u64 started;
	int err = add_all(r);

	if (!err)
		err = allocs_start(r->allocs, r->child);
	if (!err && r->unwind && allocs_file(r->allocs))
		unwinder_expect(r->unwind, allocs_file(r->allocs));
	if (!err && r->resources)
		err = r->child
			      ? resources_expect(r->resources, r->child, r->o->argv[0], &r->o->user)
			      : resources_turn(r->resources);
	if (!err && r->python)
		err = python_turn(r->python);
	if (!err && r->unwind)
		err = supply_settle(r->s, r->unwind, r->o->argv, &r->o->user);
	if (!err && r->o->group)
		err = put_group(r);
	if (err)
		return err;
	if (!r->child) {
		started = now_ns();
		pictures_clear(r->pictures);
		err = take_all(r);
		r->first_ns = now_ns() - started;
		note_not_accessed(r);
		if (!err && all_refused(r))
			err = -EACCES;
		if (!err)
			err = pictures_write(r->pictures);
		if (!err)
			err = put_window(r, 0);
		r->written_ns = r->began_ns;
		/* A recorder killed from now on leaves a picture. */
		return err ? err : trace_writer_flush(r->w);
	}
	err = put_window(r, 0);
	r->written_ns = r->began_ns;
	if (err)
		return err;
	if (write(r->go_fd, "g", 1) != 1)
		return -errno;
	await_exec(r);
	return 0;
}

static int clear_due(const struct recorder *r, u64 now)
{
	return r->accessed && r->o->every_ns && now >= r->next_clear_ns;
}

/* Every target's accessed bits are read and cleared: one cycle. All of them stay in the file. */
static int next_cycle(struct recorder *r, u64 now)
{
	int err;

	pictures_clear(r->pictures);
	err = take_all(r);
	if (!err)
		err = pictures_write(r->pictures);
	pictures_forget(r->pictures);
	r->written_ns = now;
	while (r->next_clear_ns <= now_ns())
		r->next_clear_ns += r->o->every_ns;
	return err ? err : trace_writer_flush(r->w);
}

/* One that would not be ready in time is left to the last picture. */
static int picture_due(const struct recorder *r, u64 now)
{
	u64 until = r->began_ns + r->o->duration_ns;

	return !r->o->live && now >= r->next_walk_ns &&
	       !(r->o->duration_ns && now + pictures_cost_ns(r->pictures) > until);
}

/* At most 50 ms, and not past the end of the recorded time. */
static int pause_ms(const struct recorder *r, u64 now)
{
	u64 left = r->o->duration_ns ? r->began_ns + r->o->duration_ns - now : ~0ull;

	if (r->accessed && r->o->every_ns && r->next_clear_ns < now + left)
		left = r->next_clear_ns > now ? r->next_clear_ns - now : 0;
	return left < 50000000 ? (int)(left / 1000000) + 1 : 50;
}

static int write_uses(struct recorder *r)
{
	return r->resources ? resources_write_uses(r->resources, r->w) : 0;
}

/* At most 2% of a core are spent on them. Of those that are replaced one in ten seconds stays in
 * the file: a recorder killed leaves a picture of the end. */
static int next_pictures(struct recorder *r, u64 now)
{
	int err = take_all(r);

	if (!err && now - r->written_ns >= 10000000000ull) {
		err = write_uses(r);
		if (!err)
			err = pictures_write(r->pictures);
		pictures_forget(r->pictures);
		r->written_ns = now;
	}
	return err ? err : trace_writer_flush(r->w);
}

/* A file of the ring as it is; the recording goes on. */
static int dump(struct recorder *r)
{
	const struct trigger_cause asked = {.kind = MP_TRIGGER_SIGNAL};
	int err = take_all(r);

	*r->o->dump = 0;
	if (!err)
		err = pictures_write(r->pictures);
	if (!err)
		err = session_write_losses(r->s);
	if (!err)
		err = flight_write(r->o->flight, &asked, MP_END_SIGNAL, session_seq(r->s),
				   &r->unnamed);
	r->written += !err;
	return err;
}

/* Is there a reason to end? */
static int turn_flight(struct recorder *r, u64 now)
{
	struct triggers *t = flight_triggers(r->o->flight);

	if (*r->o->dump)
		return dump(r);
	if (triggers_due(t, now, pictures_resident(r->pictures), &r->cause))
		r->end = r->cause.kind == MP_TRIGGER_OOM ? MP_END_OOM : MP_END_SIGNAL;
	return 0;
}

int recorder_turn(struct recorder *r)
{
	u64 now = now_ns();
	int err = r->o->flight ? turn_flight(r, now) : 0;

	if (err)
		return err;
	if (r->end >= 0)
		;
	else if (*r->o->stop)
		r->end = MP_END_SIGNAL;
	else if (r->o->duration_ns && now - r->began_ns >= r->o->duration_ns)
		r->end = MP_END_DURATION;
	else if (!alive(r))
		r->end = MP_END_TARGET;
	err = r->end >= 0 ? put_window(r, 1) : session_poll(r->s, pause_ms(r, now));
	if (!err && r->unwind)
		err = supply_turn(r->s, r->unwind);
	if (!err)
		err = allocs_turn(r->allocs);
	if (!err && r->resources)
		err = resources_turn(r->resources);
	if (!err && r->python)
		err = python_turn(r->python);
	if (!err)
		err = take_marks(r);
	if (!err && r->end < 0 && clear_due(r, now))
		err = next_cycle(r, now);
	else if (!err && r->end < 0 && picture_due(r, now))
		err = next_pictures(r, now);
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

	if (!err)
		err = write_uses(r);
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

	err = last_picture(r);
	if (!err)
		err = pictures_write(r->pictures);
	pictures_forget(r->pictures);
	return err;
}

/* What the targets had is known from before they went; their group's counters as of now. */
static int last_look(struct recorder *r)
{
	if (r->end != MP_END_TARGET && r->end != MP_END_SIZE && r->end != MP_END_OOM)
		return last_picture(r);
	if (r->end != MP_END_SIZE && r->o->group)
		return group_write(r->o->group, MP_CGROUP_NOW, 0, session_seq(r->s), r->w);
	return 0;
}

/* A file that cannot be read leaves the recording as it is. */
static int import(struct recorder *r)
{
	u64 ended = r->ended_ns ? r->ended_ns : now_ns();
	int err;

	if (!r->o->samples)
		return 0;
	err = import_samples(r->o->samples, session_seq(r->s), r->began_ns, ended, r->w,
			     r->not_imported, sizeof(r->not_imported));
	return err == -EFBIG || err == -ENOSPC ? err : 0;
}

int recorder_finish(struct recorder *r, const char *path)
{
	struct mp_ev_end end = {0};
	u64 started = now_ns();
	int err;

	err = last_look(r);
	if (!err)
		err = write_uses(r);
	r->last_ns = now_ns() - started;
	/* Calls whose effect the picture shows return, and say whose they are. */
	if (!err)
		err = session_settle(r->s, 500);
	if (!err)
		err = take_marks(r);
	mark_close(&r->marks);
	allocs_detach(r->allocs);
	if (r->resources)
		resources_detach(r->resources);
	if (!err || err == -EFBIG) {
		int stopped = session_stop(r->s);

		err = err ? err : stopped;
	}
	if (!err || err == -EFBIG)
		err = pictures_write(r->pictures);
	if (r->o->flight) {
		started = now_ns();
		if (!err)
			err = flight_write(r->o->flight, &r->cause, (u32)r->end, session_seq(r->s),
					   &r->unnamed);
		r->names_ns = now_ns() - started;
		r->written += !err;
		return err;
	}
	if (!err)
		err = import(r);
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
	if (!r || !*r)
		return;
	pictures_free(&(*r)->pictures);
	accessed_free(&(*r)->accessed);
	mark_close(&(*r)->marks);
	unwinder_free(&(*r)->unwind);
	allocs_free(&(*r)->allocs);
	resources_free(&(*r)->resources);
	python_free(&(*r)->python);
	session_free(&(*r)->s);
	if ((*r)->go_fd >= 0)
		close((*r)->go_fd);
	if ((*r)->err_fd >= 0)
		close((*r)->err_fd);
	free(*r);
	*r = NULL;
}

unsigned int recorder_written(const struct recorder *r, const struct trigger_cause **ret_c)
{
	*ret_c = &r->cause;
	return r->written;
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
	return pictures_refused(r->pictures, ret_first);
}

const char *recorder_not_accessed(const struct recorder *r)
{
	return r->not_accessed[0] ? r->not_accessed : NULL;
}

const char *recorder_not_imported(const struct recorder *r)
{
	return r->not_imported[0] ? r->not_imported : NULL;
}

u64 recorder_clear_ns(const struct recorder *r)
{
	return r->accessed ? accessed_cpu_ns(r->accessed) : 0;
}

u64 recorder_elapsed_ns(const struct recorder *r)
{
	return (r->ended_ns ? r->ended_ns : now_ns()) - r->began_ns;
}

u64 recorder_resident(const struct recorder *r)
{
	return pictures_resident(r->pictures);
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

u64 recorder_lost_names(const struct recorder *r)
{
	return r->unnamed + session_lost_names(r->s);
}

const char *recorder_unseen(const struct recorder *r, int calls)
{
	const char *why = r->test.wrong[calls ? SELFTEST_MAP : SELFTEST_FAULT];

	return why[0] ? why : NULL;
}

const char *recorder_unprobed(const struct recorder *r)
{
	return allocs_refused(r->allocs);
}

u64 recorder_silent(const struct recorder *r, u64 *ret_programs)
{
	return allocs_silent(r->allocs, ret_programs);
}

u64 recorder_map_bytes(const struct recorder *r)
{
	return session_map_bytes(r->s) + (r->unwind ? unwinder_bytes(r->unwind) : 0);
}

u64 recorder_picture_ns(const struct recorder *r)
{
	return pictures_cost_ns(r->pictures);
}

u64 recorder_walk_ns(const struct recorder *r)
{
	return pictures_walk_ns(r->pictures);
}

u64 recorder_hold_ns(const struct recorder *r)
{
	return pictures_hold_ns(r->pictures);
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
