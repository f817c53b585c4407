/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/config.h"
#include "lib/capture/clock.h"
#include "lib/capture/libs.h"
#include "lib/capture/modules.h"
#include "lib/capture/notes.h"
#include "lib/capture/resources.h"
#include "lib/capture/session.h"
#include "lib/sym/file.h"

/* THE table of probes. Arguments lie where the header puts them: nothing else is read. */
static const struct {
	const char *name, *args, *program;
} probes[] = {
	{"resource_begin", "8@%rdi 8@%rsi 8@%rdx", "on_resource_begin"},
	{"resource_end", "8@%rdi 8@%rsi 8@%rdx", "on_resource_end"},
	{"use", "8@%rdi", "on_resource_use"},
	{"thread", "8@%rdi", "on_resource_thread"},
};

#define NR_PROBES (sizeof(probes) / sizeof(probes[0]))

/* A file that was looked into: most have no such probe. */
struct rfile {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
	struct note *notes;
	int nr;
};

struct rproc {
	pid_t pid;
	u32 space;
	u8 to_scan, left;
	u8 joined; /* it only shares the memory of another, which has the probes */
	u8 late; /* ran before its probes were there */
	size_t *files;
	size_t nr_files;
	struct bpf_link **links;
	size_t nr_links;
};

struct resources {
	struct session *s;
	struct rfile *files;
	size_t nr_files;
	struct rproc *procs;
	size_t nr_procs;
	int due;
};

/* ---- files ---- */

static int is_same(const struct rfile *f, const struct stat *st)
{
	return f->dev == st->st_dev && f->ino == st->st_ino && f->size == st->st_size &&
	       f->changed.tv_sec == st->st_mtim.tv_sec && f->changed.tv_nsec == st->st_mtim.tv_nsec;
}

/* The number of the file behind fd, or -ENOMEM. */
static s64 file_of(struct resources *r, int fd)
{
	static struct note notes[NOTES_MAX];
	struct rfile *f;
	struct stat st;
	size_t i;
	int n;

	if (fstat(fd, &st))
		memset(&st, 0, sizeof(st));
	for (i = 0; i < r->nr_files; i++)
		if (is_same(&r->files[i], &st))
			return (s64)i;
	f = reallocarray(r->files, r->nr_files + 1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	r->files = f;
	f += r->nr_files;
	*f = (struct rfile){
		.dev = st.st_dev, .ino = st.st_ino, .size = st.st_size, .changed = st.st_mtim};
	n = notes_read(fd, "memprov", notes);
	if (n > 0) {
		f->notes = malloc((size_t)n * sizeof(*notes));
		if (!f->notes)
			return -ENOMEM;
		memcpy(f->notes, notes, (size_t)n * sizeof(*notes));
		f->nr = n;
	}
	return (s64)r->nr_files++;
}

/* ---- probes ---- */

static const struct bpf_program *program_of(const struct resources *r, const struct note *n)
{
	size_t i;

	for (i = 0; i < NR_PROBES; i++)
		if (!strcmp(n->name, probes[i].name) && !strcmp(n->args, probes[i].args))
			return session_program(r->s, probes[i].program);
	return NULL;
}

static int attach(struct resources *r, struct rproc *p, int fd, const struct note *n)
{
	const struct bpf_program *prog = program_of(r, n);
	struct bpf_link **links, *link = NULL;
	char path[64];

	if (!prog)
		return 0;
	links = reallocarray(p->links, p->nr_links + 1, sizeof(*links));
	if (!links)
		return -ENOMEM;
	p->links = links;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	errno = 0;
	if (!notes_unsafe(fd, n))
		link = bpf_program__attach_uprobe(prog, false, p->pid, path, n->offset);
	if (link)
		p->links[p->nr_links++] = link;
	else if (errno != ESRCH) /* it has not gone: what it says is not heard */
		session_count(r->s, MP_LOSS_RESOURCE, 1);
	return 0;
}

/* 1: it has probes now that it had not before; 0, or -errno. */
static int probe(struct resources *r, struct rproc *p, int fd)
{
	s64 file = file_of(r, fd);
	size_t *files, i;
	int k, err = 0;

	if (file < 0)
		return (int)file;
	for (i = 0; i < p->nr_files; i++)
		if (p->files[i] == (size_t)file)
			return 0;
	files = reallocarray(p->files, p->nr_files + 1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	p->files = files;
	files[p->nr_files++] = (size_t)file;
	for (k = 0; k < r->files[file].nr && !err; k++)
		err = attach(r, p, fd, &r->files[file].notes[k]);
	return err ? err : r->files[file].nr > 0;
}

static void drop_links(struct rproc *p)
{
	while (p->nr_links)
		bpf_link__destroy(p->links[--p->nr_links]);
	free(p->links);
	p->links = NULL;
}

/* ---- processes ---- */

static struct rproc *find(struct resources *r, pid_t pid)
{
	size_t i;

	for (i = 0; i < r->nr_procs; i++)
		if (r->procs[i].pid == pid)
			return &r->procs[i];
	return NULL;
}

static int is_born(struct resources *r, const struct mp_hdr *rec, const struct mp_ev_space *ev)
{
	struct rproc *p = find(r, (pid_t)ev->tgid);

	if (!p) {
		p = reallocarray(r->procs, r->nr_procs + 1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		r->procs = p;
		p += r->nr_procs++;
		memset(p, 0, sizeof(*p));
		p->pid = (pid_t)ev->tgid;
	}
	p->space = rec->space;
	p->left = 0;
	p->joined = ev->cause == MP_SPACE_JOIN;
	p->late = ev->cause != MP_SPACE_ATTACH;
	p->to_scan = 1;
	r->due = 1;
	return 0;
}

static int feed(void *ctx, const struct mp_hdr *rec)
{
	const struct mp_ev_map *map = trace_body(rec, map);
	struct resources *r = ctx;
	struct rproc *p;
	size_t i;

	switch (rec->type) {
	case MP_EV_SPACE:
		return is_born(r, rec, trace_body(rec, space));
	case MP_EV_SPACE_END:
		p = find(r, (pid_t)trace_body(rec, space_end)->tgid);
		if (p)
			p->left = r->due = 1;
		return 0;
	case MP_EV_MAP:
		if (!(map->prot & PROT_EXEC) || map->flags & MAP_ANONYMOUS)
			return 0;
		for (i = 0; i < r->nr_procs; i++)
			r->procs[i].to_scan |= r->procs[i].space == rec->space;
		r->due = 1;
		return 0;
	default:
		return 0;
	}
}

struct scanned {
	struct resources *r;
	struct rproc *p;
	int found;
};

static int scan_file(void *ctx, int fd, const struct mp_ev_vma *v, const char *path)
{
	struct scanned *s = ctx;
	int n = probe(s->r, s->p, fd);

	(void)v;
	(void)path;
	s->found |= n > 0;
	return n < 0 ? n : 0;
}

static int scan(struct resources *r, struct rproc *p)
{
	struct scanned s = {r, p, 0};
	int err;

	p->to_scan = 0;
	err = modules_each_code(p->pid, scan_file, &s);
	if (s.found && p->late)
		session_count(r->s, MP_LOSS_RESOURCE, 1);
	p->late = 1;
	return err;
}

int resources_turn(struct resources *r)
{
	size_t i, kept = 0;
	int err = 0;

	if (!r->due)
		return 0;
	r->due = 0;
	for (i = 0; i < r->nr_procs; i++) {
		struct rproc *p = &r->procs[i];

		if (!p->left && p->to_scan && !p->joined && !err)
			err = scan(r, p);
		if (p->left) {
			drop_links(p);
			free(p->files);
		} else {
			r->procs[kept++] = *p;
		}
	}
	r->nr_procs = kept;
	return err;
}

struct expected {
	struct resources *r;
	pid_t pid;
};

static int expect_file(void *ctx, const char *path)
{
	const struct expected *e = ctx;
	struct rproc *p = find(e->r, e->pid);
	struct stat st;
	int fd, err;

	fd = p ? file_open(-1, path, &st) : -1;
	if (fd < 0)
		return 0;
	err = probe(e->r, p, fd);
	close(fd);
	return err < 0 ? err : 0;
}

int resources_expect(struct resources *r, pid_t pid, const char *command,
		     const struct spawn_user *user)
{
	struct expected e = {r, pid};
	struct rproc *p = find(r, pid);

	if (p)
		p->to_scan = 0;
	return libs_of(command, user, expect_file, &e);
}

/* ---- records ---- */

int resource_record(struct trace_writer *w, const struct mp_hdr *wire)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_resource ev;
		struct mp_resource_text text;
	} rec;
	s64 id;

	memcpy(&rec, wire, sizeof(rec));
	id = trace_string(w, rec.text.name);
	if (id < 0)
		return (int)id;
	rec.ev.name = (u32)id;
	rec.hdr.size = sizeof(rec) - sizeof(rec.text);
	return trace_write(w, &rec.hdr);
}

static int write_use(struct trace_writer *w, u64 seq, const struct mp_resource_key *key,
		     const struct mp_resource_use *use)
{
	s64 id = trace_string(w, key->name);
	struct {
		struct mp_hdr hdr;
		struct mp_ev_resource_use ev;
	} rec = {
		.hdr = {.type = MP_EV_RESOURCE_USE,
			.size = sizeof(rec),
			.space = key->space,
			.seq = seq,
			.time_ns = now_ns()},
		.ev = {.last = use->last_ns, .uses = use->uses, .name = (u32)id},
	};

	return id < 0 ? (int)id : trace_write(w, &rec.hdr);
}

int resources_write_uses(const struct resources *r, struct trace_writer *w)
{
	int fd = session_map(r->s, "resource_uses"), err = 0;
	struct mp_resource_key key, next, *prev = NULL;
	struct mp_resource_use use;
	u32 n;

	for (n = 0; n < MP_MAX_RESOURCES && !err && !bpf_map_get_next_key(fd, prev, &next); n++) {
		key = next;
		prev = &key;
		if (!bpf_map_lookup_elem(fd, &key, &use))
			err = write_use(w, session_seq(r->s), &key, &use);
	}
	return err;
}

int resources_open(struct session *s, struct resources **ret_r)
{
	struct resources *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->s = s;
	session_watch(s, feed, r);
	*ret_r = r;
	return 0;
}

void resources_detach(struct resources *r)
{
	size_t i;

	for (i = 0; i < r->nr_procs; i++)
		drop_links(&r->procs[i]);
}

void resources_free(struct resources **r)
{
	size_t i;

	if (!r || !*r)
		return;
	resources_detach(*r);
	for (i = 0; i < (*r)->nr_procs; i++)
		free((*r)->procs[i].files);
	for (i = 0; i < (*r)->nr_files; i++)
		free((*r)->files[i].notes);
	free((*r)->procs);
	free((*r)->files);
	free(*r);
	*r = NULL;
}
