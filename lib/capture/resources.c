/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/config.h"
#include "lib/capture/clock.h"
#include "lib/capture/modules.h"
#include "lib/capture/notes.h"
#include "lib/capture/processes.h"
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
	struct file_version version;
	struct note *notes;
	int nr;
};

struct resources {
	struct session *s;
	struct rfile *files;
	size_t nr_files;
	struct processes procs;
};

/* ---- files ---- */

/* The number of the file behind fd, or -ENOMEM. */
static s64 file_of(struct resources *r, int fd)
{
	static struct note notes[NOTES_MAX];
	struct file_version version = file_version_of(fd);
	struct rfile *f;
	size_t i;
	int n;

	for (i = 0; i < r->nr_files; i++)
		if (file_version_equal(&r->files[i].version, &version))
			return (s64)i;
	f = reallocarray(r->files, r->nr_files + 1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	r->files = f;
	f += r->nr_files;
	*f = (struct rfile){.version = version};
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

static int attach(struct resources *r, struct process *p, int fd, const struct note *n)
{
	const struct bpf_program *prog = program_of(r, n);
	struct process_link link = {0};
	char path[64];

	if (!prog)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	errno = 0;
	if (!notes_unsafe(fd, n))
		link.one = bpf_program__attach_uprobe(prog, false, p->pid, path, n->offset);
	if (link.one)
		return process_add_link(p, link);
	if (errno != ESRCH) /* it has not gone: what it says is not heard */
		session_count(r->s, MP_LOSS_RESOURCE, 1);
	return 0;
}

/* 1: it has probes now that it had not before; 0, or -errno. */
static int probe(void *ctx, struct process *p, int fd, const char *path)
{
	struct resources *r = ctx;
	s64 file = file_of(r, fd);
	int k, err;

	(void)path;
	if (file < 0)
		return (int)file;
	err = process_meets(p, (size_t)file);
	if (err <= 0)
		return err;
	for (k = 0, err = 0; k < r->files[file].nr && !err; k++)
		err = attach(r, p, fd, &r->files[file].notes[k]);
	return err ? err : r->files[file].nr > 0;
}

/* ---- processes ---- */

static int feed(void *ctx, const struct mp_hdr *rec)
{
	struct resources *r = ctx;

	return processes_feed(&r->procs, rec);
}

struct scanned {
	struct resources *r;
	struct process *p;
	int found;
};

static int scan_file(void *ctx, int fd, const struct mp_ev_vma *v, const char *path)
{
	struct scanned *s = ctx;
	int n = probe(s->r, s->p, fd, path);

	(void)v;
	s->found |= n > 0;
	return n < 0 ? n : 0;
}

/* The memory that it shares has the probes already. */
static int scan(void *ctx, struct process *p)
{
	struct scanned s = {ctx, p, 0};
	int err;

	if (p->joined)
		return 0;
	p->to_scan = 0;
	err = modules_each_code(p->pid, scan_file, &s);
	if (s.found && p->late)
		session_count(s.r->s, MP_LOSS_RESOURCE, 1);
	p->late = 1;
	return err;
}

int resources_turn(struct resources *r)
{
	return processes_turn(&r->procs, scan, r);
}

int resources_expect(struct resources *r, pid_t pid, const char *command,
		     const struct spawn_user *user)
{
	return processes_expect(&r->procs, pid, command, user, probe, r);
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
	processes_detach(&r->procs);
}

void resources_free(struct resources **r)
{
	size_t i;

	if (!r || !*r)
		return;
	processes_free(&(*r)->procs);
	for (i = 0; i < (*r)->nr_files; i++)
		free((*r)->files[i].notes);
	free((*r)->files);
	free(*r);
	*r = NULL;
}
