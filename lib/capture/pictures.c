/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/accessed.h"
#include "lib/capture/clock.h"
#include "lib/capture/calibrate.h"
#include "lib/capture/group.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/pictures.h"
#include "lib/capture/session.h"
#include "lib/capture/snapshot.h"

struct shot {
	u32 space;
	struct snapshot *shot; /* the latest, not yet written */
	struct {
		struct mp_hdr hdr;
		struct mp_ev_clear ev;
	} clear; /* behind it; type 0: none */
};

struct pictures {
	struct pictures_opts o;
	struct pagewalk *walker; /* NULL: pagemap */
	char no_walker[256]; /* why */
	struct shot *shots;
	u32 nr_shots, cap_shots;
	u32 round; /* walk number */
	int clear; /* in this round */
	u32 doubts; /* MP_DOUBT_* of this round */
	u64 handed; /* accessed pages whose bit another had cleared, ever */
	pid_t not_cleared;
	u64 cost_ns, walk_ns, hold_ns, resident; /* of the latest round */
	pid_t refused_pid; /* the first of them */
	u32 refused;
	void (*each)(void *ctx);
	void *each_ctx;
};

/* MEMPROV_WALK=pagemap in the environment takes the second row of the table (tests do). */
static void choose_walk(struct pictures *p)
{
	const char *want = getenv("MEMPROV_WALK");

	if (session_blind(p->o.s))
		return;
	if (group_pages(p->o.group))
		snprintf(p->no_walker, sizeof(p->no_walker),
			 "a cgroup is recorded: whose a page is has to be asked by frame");
	else if (want && !strcmp(want, "pagemap"))
		snprintf(p->no_walker, sizeof(p->no_walker), "MEMPROV_WALK asked for it");
	else
		pagewalk_open(p->no_walker, sizeof(p->no_walker), &p->walker);
}

int pictures_new(const struct pictures_opts *o, struct pictures **ret_p)
{
	struct pictures *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->o = *o;
	choose_walk(p);
	*ret_p = p;
	return 0;
}

int pictures_by_walk(const struct pictures *p)
{
	return p->walker != NULL;
}

const char *pictures_no_walker(const struct pictures *p)
{
	return p->no_walker;
}

const char *pictures_frames(const struct pictures *p, u64 *ret_vmemmap, u64 *ret_mask)
{
	struct calibration c;
	char msg[128];

	if (p->walker) {
		pagewalk_frames(p->walker, ret_vmemmap, ret_mask);
		return NULL;
	}
	if (calibrate(&c, msg, sizeof(msg)))
		return "where the kernel keeps its page frames is not known";
	*ret_vmemmap = c.vmemmap;
	*ret_mask = c.frame_mask;
	return NULL;
}

/* ---- one ---- */

static u64 seq_of(void *ctx)
{
	return session_seq(((struct pictures *)ctx)->o.s);
}

static u64 map_ops_of(void *ctx, u32 space)
{
	return session_map_ops(((struct pictures *)ctx)->o.s, space);
}

static struct shot *shot_of(struct pictures *p, u32 space)
{
	u32 i;

	for (i = 0; i < p->nr_shots; i++)
		if (p->shots[i].space == space)
			return &p->shots[i];
	if (p->nr_shots == p->cap_shots) {
		u32 cap = p->cap_shots ? 2 * p->cap_shots : 16;
		struct shot *more = realloc(p->shots, cap * sizeof(*more));

		if (!more)
			return NULL;
		p->shots = more;
		p->cap_shots = cap;
	}
	p->shots[p->nr_shots] = (struct shot){.space = space};
	return &p->shots[p->nr_shots++];
}

void pictures_clear(struct pictures *p)
{
	p->clear = p->o.accessed != NULL;
}

pid_t pictures_not_cleared(const struct pictures *p)
{
	return p->not_cleared;
}

/* Right behind the walk that shows the pages it concerns: what is touched between the two is not
 * seen. A space that is not cleared is not watched. */
static int clear(void *ctx, pid_t pid, u32 space)
{
	struct pictures *p = ctx;
	struct shot *s = shot_of(p, space);
	int err;

	if (!s)
		return -ENOMEM;
	s->clear.hdr.seq = session_seq(p->o.s);
	s->clear.ev.walk = p->round;
	err = accessed_clear(p->o.accessed, pid, &s->clear.ev);
	if (err == -EBUSY)
		p->not_cleared = pid;
	if (err)
		return err == -ENOMEM ? err : 0;
	s->clear.hdr.type = MP_EV_CLEAR;
	s->clear.hdr.size = sizeof(s->clear);
	s->clear.hdr.space = s->space;
	s->clear.hdr.time_ns = now_ns();
	s->clear.ev.seq_end = session_seq(p->o.s);
	return 0;
}

static int take(void *ctx, pid_t pid, u32 space)
{
	struct pictures *p = ctx;
	struct shot *s = shot_of(p, space);
	const struct snapshot_env env = {
		.w = p->o.w,
		.walker = p->walker,
		.seq = seq_of,
		.map_ops = map_ops_of,
		.charged = group_pages(p->o.group),
		.by_counters = p->o.live,
		.accessed = p->o.accessed != NULL,
		.walked = p->clear ? clear : NULL,
		.ctx = p,
	};
	struct snapshot *shot;
	int err;

	if (!s)
		return -ENOMEM;
	memset(&s->clear, 0, sizeof(s->clear));
	err = snapshot_take(&env, pid, space, p->round, &shot);
	if (err == -ESRCH || err == -ENOENT)
		return 0; /* it went while we looked */
	if (err == -EACCES) {
		if (!p->refused++)
			p->refused_pid = pid;
		return 0;
	}
	if (err)
		return err;
	snapshot_free(&s->shot);
	s->shot = shot;
	p->handed += snapshot_handed(shot);
	p->resident += snapshot_resident(shot);
	p->cost_ns += snapshot_cost_ns(shot);
	p->walk_ns += snapshot_walk_ns(shot);
	if (snapshot_hold_ns(shot) > p->hold_ns)
		p->hold_ns = snapshot_hold_ns(shot);
	if (p->each)
		p->each(p->each_ctx);
	/* Of many processes, those that wait for theirs fill the rings. */
	return session_poll(p->o.s, 0);
}

/* ---- a round ---- */

/* Somebody came into the cgroup otherwise than as a child of its processes. */
static int adopt(void *ctx, pid_t pid)
{
	struct pictures *p = ctx;
	s64 space = session_has(p->o.s, pid) ? 0 : session_add(p->o.s, pid);

	return space < 0 ? (int)space : 0;
}

int pictures_take(struct pictures *p, void (*each)(void *ctx), void *ctx)
{
	int err = 0;

	p->round++;
	p->cost_ns = p->walk_ns = p->hold_ns = p->resident = 0;
	p->each = each;
	p->each_ctx = ctx;
	if (p->o.group)
		err = group_round(p->o.group);
	if (!err && p->o.group)
		err = group_each(p->o.group, adopt, p);
	if (!err)
		err = session_each(p->o.s, take, p);
	p->clear = 0;
	if (p->o.accessed)
		p->doubts = accessed_doubts(p->o.accessed);
	return err;
}

static int by_time(const void *a, const void *b)
{
	const struct shot *x = a, *y = b;
	u64 s = x->shot ? snapshot_time_ns(x->shot) : 0,
	    t = y->shot ? snapshot_time_ns(y->shot) : 0;

	return s < t ? -1 : s > t;
}

/* Bits that somebody hands on without a kdamond are idle page tracking's. */
static int put_doubts(struct pictures *p)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_accessed ev;
	} rec = {
		.hdr = {.type = MP_EV_ACCESSED,
			.size = sizeof(rec),
			.seq = session_seq(p->o.s),
			.time_ns = now_ns()},
		.ev = {.walk = p->round, .doubts = p->doubts},
	};

	if (p->handed && !(p->doubts & MP_DOUBT_DAMON))
		rec.ev.doubts |= MP_DOUBT_OTHER;
	return p->o.accessed ? trace_write(p->o.w, &rec.hdr) : 0;
}

int pictures_write(struct pictures *p)
{
	u32 i;
	int err = 0;

	if (p->nr_shots)
		qsort(p->shots, p->nr_shots, sizeof(*p->shots), by_time);
	for (i = 0; i < p->nr_shots && !err; i++) {
		if (p->shots[i].shot)
			err = snapshot_write(p->shots[i].shot, p->o.w);
		snapshot_free(&p->shots[i].shot);
		if (!err && p->shots[i].clear.hdr.type)
			err = trace_write(p->o.w, &p->shots[i].clear.hdr);
		p->shots[i].clear.hdr.type = 0;
	}
	return err ? err : put_doubts(p);
}

void pictures_forget(struct pictures *p)
{
	while (p->nr_shots)
		snapshot_free(&p->shots[--p->nr_shots].shot);
}

unsigned int pictures_spaces(const struct pictures *p)
{
	return p->nr_shots;
}

unsigned int pictures_refused(const struct pictures *p, pid_t *ret_first)
{
	*ret_first = p->refused_pid;
	return p->refused;
}

u64 pictures_cost_ns(const struct pictures *p)
{
	return p->cost_ns;
}

u64 pictures_walk_ns(const struct pictures *p)
{
	return p->walk_ns;
}

u64 pictures_hold_ns(const struct pictures *p)
{
	return p->hold_ns;
}

u64 pictures_resident(const struct pictures *p)
{
	return p->resident;
}

void pictures_free(struct pictures **p)
{
	if (!p || !*p)
		return;
	pictures_forget(*p);
	pagewalk_close(&(*p)->walker);
	free((*p)->shots);
	free(*p);
	*p = NULL;
}
