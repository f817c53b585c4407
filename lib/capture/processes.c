/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "lib/capture/libs.h"
#include "lib/capture/processes.h"
#include "lib/sym/file.h"
#include "lib/trace/trace.h"

static struct process *find(const struct processes *ps, pid_t pid)
{
	size_t i;

	for (i = 0; i < ps->nr; i++)
		if (ps->all[i].pid == pid)
			return &ps->all[i];
	return NULL;
}

struct process *processes_add(struct processes *ps, pid_t pid)
{
	struct process *p = reallocarray(ps->all, ps->nr + 1, sizeof(*p));

	if (!p)
		return NULL;
	ps->all = p;
	p += ps->nr++;
	memset(p, 0, sizeof(*p));
	p->pid = pid;
	return p;
}

static int is_born(struct processes *ps, const struct mp_hdr *rec, const struct mp_ev_space *ev)
{
	struct process *p = find(ps, (pid_t)ev->tgid);

	if (!p)
		p = processes_add(ps, (pid_t)ev->tgid);
	if (!p)
		return -ENOMEM;
	p->space = rec->space;
	p->left = p->mark = 0;
	p->joined = ev->cause == MP_SPACE_JOIN;
	p->late = ev->cause != MP_SPACE_ATTACH;
	p->to_scan = 1;
	ps->due = 1;
	return 0;
}

int processes_feed(struct processes *ps, const struct mp_hdr *rec)
{
	const struct mp_ev_map *map = trace_body(rec, map);
	struct process *p;
	size_t i;

	switch (rec->type) {
	case MP_EV_SPACE:
		return is_born(ps, rec, trace_body(rec, space));
	case MP_EV_SPACE_END:
		p = find(ps, (pid_t)trace_body(rec, space_end)->tgid);
		if (p)
			p->left = ps->due = 1;
		return 0;
	case MP_EV_MAP:
		if (!(map->prot & PROT_EXEC) || map->flags & MAP_ANONYMOUS)
			return 0;
		for (i = 0; i < ps->nr; i++)
			ps->all[i].to_scan |= ps->all[i].space == rec->space;
		ps->due = 1;
		return 0;
	default:
		return 0;
	}
}

static void drop_links(struct process *p)
{
	/* What was put on last goes first. */
	while (p->nr_links) {
		struct process_link *l = &p->links[--p->nr_links];

		if (l->one)
			bpf_link__destroy(l->one);
		else
			close(l->many);
	}
	free(p->links);
	p->links = NULL;
}

int processes_turn(struct processes *ps, int (*scan)(void *ctx, struct process *p), void *ctx)
{
	size_t i, kept = 0;
	int err = 0;

	if (!ps->due)
		return 0;
	ps->due = 0;
	for (i = 0; i < ps->nr; i++) {
		struct process *p = &ps->all[i];

		if (!p->left && p->to_scan && !err)
			err = scan(ctx, p);
		if (p->left) {
			drop_links(p);
			free(p->files);
		} else {
			ps->all[kept++] = *p;
		}
	}
	ps->nr = kept;
	return err;
}

struct expected {
	struct processes *ps;
	pid_t pid;
	int (*look)(void *ctx, struct process *p, int fd, const char *path);
	void *ctx;
};

static int expect_file(void *ctx, const char *path)
{
	const struct expected *e = ctx;
	struct process *p = find(e->ps, e->pid);
	struct stat st;
	int fd, err;

	fd = p ? file_open(-1, path, &st) : -1;
	if (fd < 0)
		return 0;
	err = e->look(e->ctx, p, fd, path);
	close(fd);
	return err < 0 ? err : 0;
}

int processes_expect(struct processes *ps, pid_t pid, const char *command,
		     const struct spawn_user *user,
		     int (*look)(void *ctx, struct process *p, int fd, const char *path), void *ctx)
{
	struct expected e = {ps, pid, look, ctx};
	struct process *p = find(ps, pid);

	if (p)
		p->to_scan = 0;
	return libs_of(command, user, expect_file, &e);
}

void processes_detach(struct processes *ps)
{
	size_t i;

	for (i = 0; i < ps->nr; i++)
		drop_links(&ps->all[i]);
}

void processes_free(struct processes *ps)
{
	size_t i;

	processes_detach(ps);
	for (i = 0; i < ps->nr; i++)
		free(ps->all[i].files);
	free(ps->all);
	memset(ps, 0, sizeof(*ps));
}

int process_meets(struct process *p, size_t file)
{
	size_t *files, i;

	for (i = 0; i < p->nr_files; i++)
		if (p->files[i] == file)
			return 0;
	files = reallocarray(p->files, p->nr_files + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	p->files = files;
	files[p->nr_files++] = file;
	return 1;
}

int process_add_link(struct process *p, struct process_link link)
{
	struct process_link *links = reallocarray(p->links, p->nr_links + 1, sizeof(*links));

	if (!links) {
		if (link.one)
			bpf_link__destroy(link.one);
		else
			close(link.many);
		return -ENOMEM;
	}
	p->links = links;
	links[p->nr_links++] = link;
	return 0;
}
