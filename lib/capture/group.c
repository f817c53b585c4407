/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/capture/cgroup.h"
#include "lib/capture/group.h"
#include "lib/capture/memcg.h"
#include "lib/capture/pagecg.h"
#include "lib/capture/snapshot.h"

#define MOUNTINFO "/proc/self/mountinfo"

struct group {
	struct cgroup_mount mount;
	struct cgroup cg;
	struct pagecg *pages;
	int pages_err;
	u32 groups; /* in the tree, when last looked */
	char msg[CGROUP_PATH + 256];
};

int group_open(const char *spec, char *msg, size_t len, struct group **ret_g)
{
	struct group *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return -ENOMEM;
	err = cgroup_mount_find(MOUNTINFO, &g->mount);
	if (err)
		snprintf(msg, len,
			 "--cgroup %s: no hierarchy with the memory controller in %s: mount one, "
			 "or name processes by -p",
			 spec, MOUNTINFO);
	else
		err = cgroup_find(spec, &g->mount, &g->cg, msg, len);
	if (err) {
		free(g);
		return err;
	}
	g->pages_err = pagecg_new(&g->pages);
	*ret_g = g;
	return 0;
}

struct each {
	int (*fn)(void *ctx, pid_t pid);
	void *ctx;
};

static int with_memory(void *ctx, pid_t pid)
{
	struct each *e = ctx;

	if (pid == getpid() || snapshot_thread(pid) <= 0)
		return 0;
	return e->fn(e->ctx, pid);
}

int group_each(const struct group *g, int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	struct each e = {fn, ctx};
	int err = cgroup_each_pid(&g->cg, with_memory, &e);

	return err == -ENOENT ? 0 : err;
}

const struct cgroup *group_cgroup(const struct group *g)
{
	return &g->cg;
}

struct pagecg *group_pages(const struct group *g)
{
	return g ? g->pages : NULL;
}

const char *group_pages_reason(const struct group *g)
{
	if (g->pages)
		return NULL;
	return g->pages_err == -ENOENT ? "the kernel has no /proc/kpagecgroup"
				       : "/proc/kpagecgroup cannot be read: run as root";
}

int group_round(struct group *g)
{
	u64 *inos;
	int n, err;

	n = cgroup_inodes(&g->cg, &inos);
	if (n == -ENOENT)
		return 0; /* gone: what was known of it stays */
	if (n < 0)
		return n;
	g->groups = (u32)n;
	err = g->pages ? pagecg_set(g->pages, inos, (size_t)n) : 0;
	free(inos);
	if (!err && g->pages)
		pagecg_begin(g->pages);
	return err;
}

static int add_pages(struct memcg_reading *r, const u64 *bytes)
{
	int i, err = 0;

	for (i = 0; i < PAGECG_KINDS && !err; i++)
		err = memcg_add(r, "/proc/kpagecgroup", pagecg_names[i], bytes[i]);
	return err;
}

int group_write(struct group *g, u32 when, int search, u64 seq, struct trace_writer *w)
{
	struct memcg_reading r = {0};
	u64 bytes[PAGECG_KINDS];
	u32 flags = g->pages ? MP_CGROUP_ASKED : 0;
	int searched = 0, err = g->groups ? 0 : group_round(g);

	if (err)
		return err;
	/* Before the figures are read: what it finds lies between two readings too. */
	if (search && g->pages)
		searched = !pagecg_search(g->pages, bytes);
	err = memcg_read(&g->cg, &r, g->msg, sizeof(g->msg));
	if (err && when != MP_CGROUP_START) {
		if (err == -ENOENT)
			g->msg[0] = 0;
		return 0; /* what is missing is said by the check */
	}
	if (err)
		return err;
	if (searched) {
		flags |= MP_CGROUP_PAGES;
		err = add_pages(&r, bytes);
	}
	if (!err)
		err = memcg_write(&g->cg, &r, g->groups, flags, when, seq, w);
	memcg_release(&r);
	return err;
}

const char *group_error(const struct group *g)
{
	return g->msg;
}

void group_close(struct group **g)
{
	if (!g || !*g)
		return;
	pagecg_free(&(*g)->pages);
	free(*g);
	*g = NULL;
}
