/* SPDX-License-Identifier: GPL-2.0-only */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/group.h"
#include "lib/capture/memcg.h"
#include "lib/capture/trigger.h"

#define MOUNTINFO  "/proc/self/mountinfo"
#define PRESSURE   "/proc/pressure/memory"
#define SECOND	   1000000000ull
#define EVERY_NS   100000000ull
#define WINDOW_MAX (3600 * SECOND)

enum unit { UNIT_NONE, UNIT_PERCENT, UNIT_BYTES, UNIT_RATE };

static const struct row {
	const char *name;
	enum mp_trigger kind;
	enum unit unit;
	int window, full; /* it may be followed by a time; full: see proc_pressure */
} rows[] = {
	{"psi:some", MP_TRIGGER_PSI, UNIT_PERCENT, 1, 0},
	{"psi:full", MP_TRIGGER_PSI, UNIT_PERCENT, 1, 1},
	{"rss", MP_TRIGGER_RSS, UNIT_BYTES, 0, 0},
	{"cgroup", MP_TRIGGER_CGROUP, UNIT_PERCENT, 0, 0},
	{"refault", MP_TRIGGER_REFAULT, UNIT_RATE, 0, 0},
	{"oom", MP_TRIGGER_OOM, UNIT_NONE, 0, 0},
};

struct trigger {
	const struct row *row;
	char expr[64];
	u64 limit, window_ns;
	/* What is counted, as it was when the window began. */
	u64 base, base_ns;
};

struct triggers {
	struct trigger all[TRIGGERS_MAX];
	unsigned int nr;
	struct cgroup_mount mount;
	struct cgroup cg;
	int has_mount, has_group;
	u64 refaulted; /* pages */
	u32 killed; /* process id, 0 none */
	u64 killed_in; /* inode of its cgroup's folder */
	u64 looked_ns;
	struct cgroup limiting; /* of the killed */
};

int triggers_new(struct triggers **ret_t)
{
	struct triggers *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret_t = t;
	return 0;
}

/* ---- their words ---- */

static u64 number(const char **at)
{
	char *end;
	unsigned long long v;

	if (!isdigit((unsigned char)**at))
		return 0;
	v = strtoull(*at, &end, 10);
	*at = end;
	return v < 1ull << 40 ? v : 0;
}

static int take(const char **at, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*at, word, n) != 0)
		return 0;
	*at += n;
	return 1;
}

static u64 size_of(const char **at)
{
	static const char units[] = "KMGT";
	u64 v = number(at);
	const char *unit = **at ? strchr(units, toupper((unsigned char)**at)) : NULL;

	if (!unit)
		return v;
	++*at;
	return v << 10 * (unit - units + 1);
}

static u64 limit_of(const struct row *row, const char **at)
{
	u64 v;

	if (row->unit == UNIT_BYTES)
		return size_of(at);
	v = number(at);
	if (row->unit == UNIT_PERCENT)
		return take(at, "%") && v <= 100 ? v : 0;
	return take(at, "/s") ? v : 0;
}

static u64 window_of(const char **at)
{
	u64 v = number(at);

	if (take(at, "ms"))
		v *= 1000000;
	else if (take(at, "s"))
		v *= SECOND;
	else if (take(at, "m"))
		v *= 60 * SECOND;
	else
		v = 0;
	return v >= EVERY_NS && v <= WINDOW_MAX ? v : 0;
}

static int parse(const char *text, struct trigger *ret)
{
	const char *at = text;
	size_t i, n = sizeof(rows) / sizeof(rows[0]);

	for (i = 0; i < n && !take(&at, rows[i].name); i++)
		;
	if (i == n || strlen(text) >= sizeof(ret->expr))
		return -EINVAL;
	*ret = (struct trigger){.row = &rows[i], .window_ns = SECOND};
	snprintf(ret->expr, sizeof(ret->expr), "%s", text);
	if (rows[i].unit == UNIT_NONE)
		return *at ? -EINVAL : 0;
	if (!take(&at, ">"))
		return -EINVAL;
	ret->limit = limit_of(&rows[i], &at);
	if (rows[i].window && take(&at, "/"))
		ret->window_ns = window_of(&at);
	return *at || !ret->limit || !ret->window_ns ? -EINVAL : 0;
}

int triggers_add(struct triggers *t, const char *text, char *msg, size_t len)
{
	if (t->nr == TRIGGERS_MAX) {
		snprintf(msg, len, "--trigger %s: at most %d", text, TRIGGERS_MAX);
		return -EINVAL;
	}
	if (parse(text, &t->all[t->nr])) {
		snprintf(msg, len,
			 "--trigger %s: not a trigger; try psi:some>10%%/1s, rss>2G, cgroup>90%%, "
			 "refault>1000/s or oom",
			 text);
		return -EINVAL;
	}
	t->nr++;
	return 0;
}

/* ---- what they look at ---- */

static int figure(const struct cgroup *c, const char *name, u64 *ret)
{
	struct memcg_reading r = {0};
	char msg[64];
	int err = memcg_read(c, &r, msg, sizeof(msg));

	if (!err)
		err = memcg_figure(&r, name, ret);
	memcg_release(&r);
	return err;
}

/* Microseconds, ever. Of the machine where the group has none. */
static int stalled(const struct triggers *t, int full, u64 *ret)
{
	const char *want = full ? "full" : "some";
	unsigned long long total;
	int err = t->has_group ? figure(&t->cg, full ? "psi_full" : "psi_some", ret) : -ENODATA;
	char line[160];
	FILE *f;

	if (!err)
		return 0;
	f = fopen(PRESSURE, "re");
	if (!f)
		return -errno;
	err = -ENODATA;
	while (err && fgets(line, sizeof(line), f)) {
		const char *at = strstr(line, "total=");

		if (!strncmp(line, want, 4) && at && sscanf(at, "total=%llu", &total) == 1)
			err = 0;
	}
	/* The file is there, and says so when it is read, where psi is off. */
	if (err && ferror(f))
		err = -EOPNOTSUPP;
	fclose(f);
	if (!err)
		*ret = total;
	return err;
}

/* The group or the one above it that has a limit. */
static int limiting(const struct triggers *t, struct cgroup *c, u64 *ret_limit)
{
	while (figure(c, "limit", ret_limit))
		if (cgroup_parent(&t->mount, c))
			return -ENOENT;
	return 0;
}

static int check(struct triggers *t, struct trigger *g, char *msg, size_t len)
{
	u64 v;

	if (g->row->kind == MP_TRIGGER_PSI && stalled(t, g->row->full, &v)) {
		snprintf(msg, len,
			 "--trigger %s: the kernel gives no " PRESSURE
			 ": boot with psi=1, or use refault>",
			 g->expr);
		return -ENODATA;
	}
	if (g->row->kind == MP_TRIGGER_CGROUP &&
	    (!t->has_group || figure(&t->cg, "current", &v) || limiting(t, &t->cg, &v))) {
		snprintf(msg, len,
			 "--trigger %s: no memory cgroup with a limit: give one by --cgroup, or "
			 "use rss>",
			 g->expr);
		return -ENODATA;
	}
	return 0;
}

int triggers_open(struct triggers *t, const struct group *g, pid_t pid, char *msg, size_t len)
{
	char spec[32], ignored[256];
	unsigned int i;
	int err = 0;

	t->has_mount = !cgroup_mount_find(MOUNTINFO, &t->mount);
	if (g) {
		t->cg = *group_cgroup(g);
		t->has_group = 1;
	} else if (t->has_mount) {
		snprintf(spec, sizeof(spec), "of:%d", (int)pid);
		t->has_group = !cgroup_find(spec, &t->mount, &t->cg, ignored, sizeof(ignored));
	}
	for (i = 0; i < t->nr && !err; i++)
		err = check(t, &t->all[i], msg, len);
	return err;
}

void triggers_feed(struct triggers *t, const struct mp_hdr *rec)
{
	const struct mp_ev_edge *e = trace_body(rec, edge);
	const struct mp_ev_oom *o = trace_body(rec, oom);

	if (rec->type == MP_EV_EDGE && e->kind == MP_EDGE_REFAULTED)
		t->refaulted += e->pages;
	if (rec->type == MP_EV_OOM && !t->killed) {
		t->killed = (u32)o->tgid;
		t->killed_in = o->memcg;
	}
}

/* ---- are they due ---- */

/* Growth of a counter in a second, or in millionths of the time; 0 before the window is over. */
static u64 rate(struct trigger *g, u64 count, u64 now, u64 scale)
{
	u64 span = now - g->base_ns, v;

	if (!g->base_ns || count < g->base) {
		g->base = count;
		g->base_ns = now;
		return 0;
	}
	if (span < g->window_ns)
		return 0;
	v = (u64)((double)(count - g->base) * (double)scale / (double)span);
	g->base = count;
	g->base_ns = now;
	return v;
}

static u64 measure(struct triggers *t, struct trigger *g, u64 now, u64 resident)
{
	u64 v = 0, limit = 0;

	switch (g->row->kind) {
	case MP_TRIGGER_PSI:
		/* Microseconds in nanoseconds, as a percentage. */
		return stalled(t, g->row->full, &v) ? 0 : rate(g, v, now, 100000);
	case MP_TRIGGER_RSS:
		return resident;
	case MP_TRIGGER_REFAULT:
		return rate(g, t->refaulted, now, SECOND);
	case MP_TRIGGER_CGROUP:
		if (figure(&t->cg, "current", &v) || figure(&t->cg, "limit", &limit) || !limit)
			return 0;
		return v * 100 / limit;
	default:
		return 0;
	}
}

/* Whose limit it was is that of the group of the killed, or of the first above that has one. */
static void blame(struct triggers *t, struct trigger_cause *c)
{
	u64 limit = 0;

	c->tgid = t->killed;
	t->limiting = t->cg;
	if (t->killed_in && t->has_mount &&
	    cgroup_of_inode(&t->mount, t->killed_in, &t->limiting) && !t->has_group)
		return;
	if ((t->has_group || t->killed_in) && !limiting(t, &t->limiting, &limit)) {
		c->memcg = t->limiting.path;
		c->limit = limit;
	}
}

int triggers_due(struct triggers *t, u64 now_ns, u64 resident, struct trigger_cause *ret_c)
{
	unsigned int i;

	for (i = 0; i < t->nr && t->killed; i++) {
		if (t->all[i].row->kind != MP_TRIGGER_OOM)
			continue;
		*ret_c = (struct trigger_cause){.kind = MP_TRIGGER_OOM, .expr = t->all[i].expr};
		blame(t, ret_c);
		return 1;
	}
	if (now_ns - t->looked_ns < EVERY_NS)
		return 0;
	t->looked_ns = now_ns;
	for (i = 0; i < t->nr; i++) {
		struct trigger *g = &t->all[i];
		u64 v = measure(t, g, now_ns, resident);

		if (g->row->kind == MP_TRIGGER_OOM || v <= g->limit)
			continue;
		*ret_c = (struct trigger_cause){
			.kind = g->row->kind, .expr = g->expr, .value = v, .limit = g->limit};
		if (g->row->kind == MP_TRIGGER_CGROUP)
			ret_c->memcg = t->cg.path;
		return 1;
	}
	return 0;
}

void triggers_free(struct triggers **t)
{
	if (!t)
		return;
	free(*t);
	*t = NULL;
}
