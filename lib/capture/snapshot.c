/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/clock.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/picture.h"

struct snapshot {
	struct picture p;
	u64 begin_ns, end_ns;
};

/* The lines of a file of keys in kB, each to fn in bytes. */
static int each_key(pid_t pid, const char *file, struct mp_ev_check *c,
		    void (*fn)(struct mp_ev_check *c, const char *key, u64 bytes))
{
	FILE *f = proc_open(pid, file);
	unsigned long long v;
	char line[256], key[64];

	if (!f)
		return proc_error();
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63[A-Za-z_]: %llu kB", key, &v) == 2)
			fn(c, key, v * 1024);
	fclose(f);
	return 0;
}

static void smaps_key(struct mp_ev_check *c, const char *key, u64 v)
{
	if (!strcmp(key, "Rss"))
		c->rss = v;
	else if (!strcmp(key, "Pss"))
		c->pss = v;
	else if (!strcmp(key, "Swap"))
		c->swap = v;
	else if (!strcmp(key, "Private_Hugetlb") || !strcmp(key, "Shared_Hugetlb"))
		c->hugetlb += v;
	else if (!strcmp(key, "AnonHugePages") || !strcmp(key, "ShmemPmdMapped") ||
		 !strcmp(key, "FilePmdMapped"))
		c->thp += v;
}

static void status_key(struct mp_ev_check *c, const char *key, u64 v)
{
	if (!strcmp(key, "VmSize"))
		c->vmsize = v;
	else if (c->source == MP_CHECK_STATUS && !strncmp(key, "Rss", 3))
		c->rss += v; /* RssAnon, RssFile, RssShmem */
}

static int put_check(struct picture *p, pid_t pid, u32 when)
{
	struct mp_ev_check c = {
		.walk = p->walk,
		.when = when,
		.source = p->env->by_counters ? MP_CHECK_STATUS : MP_CHECK_SMAPS,
	};
	int err = 0;

	if (!p->env->by_counters)
		err = each_key(pid, "smaps_rollup", &c, smaps_key);
	if (!err)
		err = each_key(pid, "status", &c, status_key);
	return err ? err : picture_put(p, MP_EV_CHECK, &c, sizeof(c));
}

static int thread_has_memory(pid_t tid)
{
	FILE *f = proc_open(tid, "status");
	char line[256];
	int mm = 0;

	if (!f)
		return 0;
	while (!mm && fgets(line, sizeof(line), f))
		mm = !strncmp(line, "VmSize:", 7);
	fclose(f);
	return mm;
}

pid_t snapshot_thread(pid_t pid)
{
	struct dirent *d;
	char path[64];
	pid_t found = 0;
	DIR *dir;

	if (thread_has_memory(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return -ESRCH;
	while (!found && (d = readdir(dir)))
		if (isdigit((unsigned char)d->d_name[0]) &&
		    thread_has_memory((pid_t)atol(d->d_name)))
			found = (pid_t)atol(d->d_name);
	closedir(dir);
	return found;
}

static int all_stopped(pid_t pid)
{
	char path[64], buf[512], *p;
	struct dirent *d;
	int stopped = 1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (stopped && (d = readdir(dir))) {
		FILE *f;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "task/%.20s/stat", d->d_name);
		f = proc_open(pid, path);
		if (!f)
			continue;
		p = fgets(buf, sizeof(buf), f) ? strrchr(buf, ')') : NULL;
		stopped = p && p[1] == ' ' && (p[2] == 'T' || p[2] == 't');
		fclose(f);
	}
	closedir(dir);
	return stopped;
}

/* The same records but for their sequence numbers and times? */
static int same(const struct picture *a, const struct picture *b)
{
	size_t at = 0, h = sizeof(struct mp_hdr);
	struct mp_hdr hdr, other;

	if (a->len != b->len)
		return 0;
	for (; at < a->len; at += hdr.size) {
		memcpy(&hdr, a->recs + at, h);
		memcpy(&other, b->recs + at, h);
		if (hdr.type != other.type || hdr.size != other.size)
			return 0;
		if (hdr.type != MP_EV_CHUNK &&
		    memcmp(a->recs + at + h, b->recs + at + h, hdr.size - h) != 0)
			return 0;
	}
	return 1;
}

static int walk_once(struct picture *p, pid_t tid)
{
	u64 began = thread_ns();
	int err;

	p->len = 0;
	p->resident = 0;
	p->run.pages = 0;
	err = p->env->walker ? walk_by_tables(p, tid) : walk_by_pagemap(p, tid);
	p->walk_ns = thread_ns() - began;
	return err;
}

/* Of a target whose threads are all stopped two walks must agree: others may still reclaim, migrate
 * or unmap its pages. *ret_stable says whether two did. */
static int walk_pages(struct picture *p, pid_t pid, pid_t tid, u32 *ret_stable)
{
	int err = walk_once(p, tid), tries;
	u64 seq = p->seq_now;

	/* A page is charged where it is met first: a second look would not find the same. */
	*ret_stable = !err && p->env->charged && all_stopped(pid);
	if (p->env->charged)
		return err;
	for (tries = 0; !err && tries < 3 && all_stopped(pid); tries++) {
		struct picture again = *p;

		again.recs = NULL;
		again.cap = 0;
		err = walk_once(&again, tid);
		*ret_stable = !err && same(p, &again) && all_stopped(pid) &&
			      p->env->seq(p->env->ctx) == seq;
		free(p->recs);
		*p = again;
		seq = p->seq_now;
		if (*ret_stable)
			break;
	}
	return err;
}

/* The pages are walked into a picture of their own and put between the marks afterwards. */
static int take(struct picture *p, pid_t pid, pid_t tid)
{
	struct mp_ev_walk mark = {
		.id = p->walk,
		.provider = p->env->walker ? MP_WALK_BPF : MP_WALK_PAGEMAP,
	};
	struct picture pages = *p;
	u64 seq_begin = p->env->seq(p->env->ctx);
	size_t at;
	int err;

	p->seq_now = seq_begin;
	err = picture_put(p, MP_EV_WALK, &mark, sizeof(mark));
	if (!err)
		err = put_check(p, tid, 0);
	if (!err)
		err = walk_pages(&pages, pid, tid, &mark.stable);
	if (!err && p->env->walked)
		err = p->env->walked(p->env->ctx, pid, p->space);
	for (at = 0; !err && at < pages.len;) {
		struct mp_hdr hdr;

		memcpy(&hdr, pages.recs + at, sizeof(hdr));
		p->seq_now = hdr.seq;
		err = picture_put(p, hdr.type, pages.recs + at + sizeof(hdr),
				  hdr.size - sizeof(hdr));
		at += hdr.size;
	}
	p->resident = pages.resident;
	p->walk_ns = pages.walk_ns;
	p->hold_ns = pages.hold_ns;
	p->handed = pages.handed;
	free(pages.recs);
	p->seq_now = p->env->seq(p->env->ctx);
	p->time_ns = now_ns();
	if (!err)
		err = put_check(p, tid, 1);
	mark.end = 1;
	mark.stable = mark.stable && p->seq_now == seq_begin && all_stopped(pid);
	if (!err)
		err = picture_put(p, MP_EV_WALK, &mark, sizeof(mark));
	return err;
}

int snapshot_take(const struct snapshot_env *env, pid_t pid, u32 space, u32 walk_id,
		  struct snapshot **ret_s)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	pid_t tid = snapshot_thread(pid);
	int err;

	if (!s)
		return -ENOMEM;
	if (tid <= 0) {
		free(s);
		return -ESRCH;
	}
	s->p.env = env;
	s->p.space = space;
	s->p.walk = walk_id;
	s->p.to = ~0ull;
	s->begin_ns = s->p.time_ns = now_ns();
	err = take(&s->p, pid, tid);
	s->end_ns = now_ns();
	if (err)
		snapshot_free(&s);
	else
		*ret_s = s;
	return err;
}

u64 snapshot_cost_ns(const struct snapshot *s)
{
	return s->end_ns - s->begin_ns;
}

u64 snapshot_walk_ns(const struct snapshot *s)
{
	return s->p.walk_ns;
}

u64 snapshot_hold_ns(const struct snapshot *s)
{
	return s->p.hold_ns;
}

u64 snapshot_handed(const struct snapshot *s)
{
	return s->p.handed;
}

u64 snapshot_time_ns(const struct snapshot *s)
{
	return s->end_ns;
}

u64 snapshot_resident(const struct snapshot *s)
{
	return s->p.resident;
}

int snapshot_write(const struct snapshot *s, struct trace_writer *w)
{
	size_t at = 0;
	int err = 0;

	while (at < s->p.len && !err) {
		struct mp_hdr hdr;
		union {
			struct mp_hdr hdr;
			u8 bytes[256];
		} rec;

		memcpy(&hdr, s->p.recs + at, sizeof(hdr));
		memcpy(rec.bytes, s->p.recs + at, hdr.size);
		err = trace_write(w, &rec.hdr);
		at += hdr.size;
	}
	return err;
}

void snapshot_free(struct snapshot **s)
{
	if (!s || !*s)
		return;
	free((*s)->p.recs);
	free(*s);
	*s = NULL;
}
