/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/config.h"
#include "alloc.skel.h"
#include "memprov.skel.h"
#include "lib/capture/announced.h"
#include "lib/capture/modules.h"
#include "lib/capture/multi.h"
#include "lib/capture/processes.h"
#include "lib/capture/refusal.h"
#include "lib/capture/session.h"
#include "lib/capture/sites.h"
#include "lib/capture/uprobes.h"
#include "lib/sym/file.h"

/* The objects share their variables: these lie where they lie in the other. */
#define SAME_PLACE(name)                                                \
	_Static_assert(offsetof(struct alloc_bpf__bss, name) ==         \
			       offsetof(struct memprov_bpf__bss, name), \
		       #name " has another place")
SAME_PLACE(mp_seq);
SAME_PLACE(mp_losses);
SAME_PLACE(mp_epoch);
SAME_PLACE(mp_next_space);
SAME_PLACE(mp_filter);
SAME_PLACE(mp_unwind_generation);

/* A file that was looked into. */
struct ufile {
	struct file_version version;
	struct site *sites;
	size_t nr;
};

#define EVERYBODY -1 /* a pid */

#define UNPROBED  1 /* mark: no allocator was found in it, and that is said */

struct uprobes {
	struct session *s;
	struct alloc_bpf *skel;
	int announced; /* static probes, not functions */
	const char *prefixes;
	struct ufile *files;
	size_t nr_files;
	struct processes procs;
	u64 programs, samplers; /* executed; of them, those that announce allocations */
	int multi; /* the kernel has uprobe_multi */
	int everywhere; /* all that is to be probed is, in whatever process */
	char refused[256];
};

/* ---- files ---- */

static void refuse(struct uprobes *u, const char *path, int err)
{
	if (!u->refused[0])
		snprintf(u->refused, sizeof(u->refused), "%s: %s", path,
			 err == -ENOTSUP  ? "a Go program: return probes would crash it"
			 : err == -EINVAL ? "its static probes are in a place that cannot be probed"
					  : strerror(-err));
}

/* The number of the file behind fd, or -ENOMEM. */
static s64 file_of(struct uprobes *u, int fd, const char *path)
{
	struct file_version version = file_version_of(fd);
	struct site sites[SITES_MAX];
	struct ufile *f;
	size_t i;
	int n;

	for (i = 0; i < u->nr_files; i++)
		if (file_version_equal(&u->files[i].version, &version))
			return (s64)i;
	f = reallocarray(u->files, u->nr_files + 1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	u->files = f;
	f += u->nr_files;
	*f = (struct ufile){.version = version};
	n = u->announced ? announced_sites(fd, sites) : sites_read(fd, u->prefixes, sites);
	if (n < 0 && n != -ENOEXEC)
		refuse(u, path, n);
	if (n > 0) {
		f->sites = malloc((size_t)n * sizeof(*f->sites));
		if (!f->sites)
			return -ENOMEM;
		memcpy(f->sites, sites, (size_t)n * sizeof(*f->sites));
		f->nr = (size_t)n;
	}
	return (s64)u->nr_files++;
}

/* ---- probes ---- */

/* Sets of MP_ARGS_*, a bit each. */
#define KIND(args) (1u << (args))
#define RETURNING  (KIND(MP_ARGS_OLD) - 1) /* all below it */
#define REALLOCS   (KIND(MP_ARGS_OLD_SIZE) | KIND(MP_ARGS_OLD_COUNT_SIZE))

/* Puts prog on those sites of the file that are of these kinds, on their returns if it asks. */
static int probe_kind(struct uprobes *u, struct process *p, const struct bpf_program *prog,
		      const struct ufile *f, u32 kinds, int at_return, const char *path)
{
	u64 offsets[SITES_MAX], cookies[SITES_MAX], counters[SITES_MAX];
	struct multi_sites at = {.offsets = offsets, .cookies = cookies};
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = at_return);
	struct process_link link = {0};
	size_t i, n = 0;
	int err = 0;

	for (i = 0; i < f->nr; i++) {
		if (!(kinds & KIND(f->sites[i].args)))
			continue;
		offsets[n] = f->sites[i].offset;
		counters[n] = f->sites[i].counter;
		if (counters[n])
			at.counters = counters;
		cookies[n++] = f->sites[i].cookie;
	}
	at.nr = n;
	if (n && u->multi) {
		link.many = multi_attach(bpf_program__fd(prog), p->pid == EVERYBODY ? 0 : p->pid,
					 path, &at, at_return);
		return link.many < 0 ? link.many : process_add_link(p, link);
	}
	for (i = 0; i < n && !err; i++) {
		opts.bpf_cookie = cookies[i];
		opts.ref_ctr_offset = counters[i];
		link.one = bpf_program__attach_uprobe_opts(prog, p->pid, path, offsets[i], &opts);
		err = link.one ? process_add_link(p, link) : -errno;
	}
	return err;
}

/* Nothing may be born whose end could be missed: returns first, then what ends blocks, then what
 * makes them. */
static int probe_file(struct uprobes *u, struct process *p, const struct ufile *f, int fd)
{
	const struct {
		const struct bpf_program *prog;
		u32 kinds;
		int at_return;
	} order[] = {
		{u->skel->progs.on_alloc_return, RETURNING, 1},
		{u->skel->progs.on_free, KIND(MP_ARGS_OLD), 0},
		{u->skel->progs.on_unseen, KIND(MP_ARGS_UNSEEN), 0},
		{u->skel->progs.on_alloc_enter, REALLOCS, 0},
		{u->skel->progs.on_alloc_enter, RETURNING & ~REALLOCS, 0},
		{u->skel->progs.on_sample_lost, KIND(MP_ARGS_SAMPLE_LOST), 0},
		{u->skel->progs.on_sample_end, KIND(MP_ARGS_SAMPLE_END), 0},
		{u->skel->progs.on_sampler, KIND(MP_ARGS_SAMPLER), 0},
		{u->skel->progs.on_sample, KIND(MP_ARGS_SAMPLE), 0},
	};
	char path[64];
	size_t i;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (i = 0; i < sizeof(order) / sizeof(order[0]) && !err; i++)
		err = probe_kind(u, p, order[i].prog, f, order[i].kinds, order[i].at_return, path);
	return err;
}

/* 1: it has probes now that it had not before. A process that has gone, or a file that the kernel
 * puts no probe on, ends no recording. */
static int probe(void *ctx, struct process *p, int fd, const char *path)
{
	struct uprobes *u = ctx;
	s64 file = file_of(u, fd, path);
	int err;

	if (file < 0)
		return (int)file;
	err = process_meets(p, (size_t)file);
	if (err <= 0)
		return err;
	if (!u->files[file].nr)
		return 0;
	err = probe_file(u, p, &u->files[file], fd);
	if (err && err != -ESRCH)
		refuse(u, path, err);
	return err == -ENOMEM ? err : 1;
}

/* ---- processes ---- */

static int feed(void *ctx, const struct mp_hdr *rec)
{
	struct uprobes *u = ctx;

	if (rec->type == MP_EV_SPACE && trace_body(rec, space)->cause == MP_SPACE_EXEC)
		u->programs++;
	if (rec->type == MP_EV_SAMPLER)
		u->samplers++;
	return u->everywhere ? 0 : processes_feed(&u->procs, rec);
}

struct scanned {
	struct uprobes *u;
	struct process *p;
	int is_new;
};

static int scan_file(void *ctx, int fd, const struct mp_ev_vma *v, const char *path)
{
	struct scanned *s = ctx;
	int n = probe(s->u, s->p, fd, path);

	(void)v;
	s->is_new |= n > 0;
	return n < 0 ? n : 0;
}

/* What a process did between its birth, or the mapping of an allocator, and now was not seen. */
static int scan(void *ctx, struct process *p)
{
	struct uprobes *u = ctx;
	struct scanned s = {u, p, 0};
	int err;

	/* As a rule a child that shares memory does nothing but exec; one that is still there may
	 * allocate. Single probes see it by the memory, many by the process. */
	if (p->joined && !u->multi)
		return 0;
	p->to_scan = 0;
	err = modules_each_code(p->pid, scan_file, &s);
	if (!err &&
	    ((s.is_new && p->late) || (!p->nr_links && p->mark != UNPROBED && !u->announced)))
		err = session_lose(u->s, p->space, MP_LOSS_ALLOC_GAP, MP_CLASS_ALLOC);
	p->mark = p->nr_links ? 0 : UNPROBED;
	p->late = 1;
	return err;
}

int uprobes_turn(struct uprobes *u)
{
	return processes_turn(&u->procs, scan, u);
}

int uprobes_everywhere(struct uprobes *u, const char *path)
{
	struct process *p = processes_add(&u->procs, EVERYBODY);
	struct stat st;
	int fd, err;

	if (!p)
		return -ENOMEM;
	u->everywhere = 1;
	fd = file_open(-1, path, &st);
	if (fd < 0)
		return fd;
	err = probe(u, p, fd, path);
	close(fd);
	if (err < 0)
		return err;
	return p->nr_links ? 0 : -ENOENT;
}

int uprobes_expect(struct uprobes *u, pid_t pid, const char *command, const struct spawn_user *user)
{
	return processes_expect(&u->procs, pid, command, user, probe, u);
}

/* ---- the object ---- */

static int load(struct uprobes *u, const struct uprobes_opts *o, int multi)
{
	struct bpf_program *prog;
	int err;

	u->skel = alloc_bpf__open();
	if (!u->skel)
		return -errno;
	u->skel->rodata->cfg_min_bytes = o->min_bytes;
	if (o->ring_bytes) {
		u->skel->rodata->cfg_alloc_wake = (u32)o->ring_bytes / 4;
		bpf_map__set_max_entries(u->skel->maps.alloc_ring, (u32)o->ring_bytes);
	}
	err = session_share(u->s, u->skel->obj);
	if (multi)
		bpf_object__for_each_program(prog, u->skel->obj)
			bpf_program__set_expected_attach_type(prog, MULTI_ATTACH_TYPE);
	return err ? err : alloc_bpf__load(u->skel);
}

/* With uprobe_multi where the kernel has it. */
static int load_any(struct uprobes *u, const struct uprobes_opts *o)
{
	u->multi = !load(u, o, 1) && multi_works(bpf_program__fd(u->skel->progs.on_free));
	if (u->multi)
		return 0;
	alloc_bpf__destroy(u->skel);
	u->skel = NULL;
	return load(u, o, 0);
}

int uprobes_open(struct session *s, const struct uprobes_opts *o, char *msg, size_t msg_len,
		 struct uprobes **ret_u)
{
	struct uprobes *u = calloc(1, sizeof(*u));
	const char *lacks;
	int err;

	if (!u)
		return -ENOMEM;
	lacks = refusal_lacks(REFUSAL_ALLOC);
	if (lacks) {
		snprintf(msg, msg_len,
			 "the kernel is too old for probes on allocators, it has no %s: boot a "
			 "newer "
			 "one, --alloc map does without",
			 lacks);
		free(u);
		return -ENOTSUP;
	}
	u->s = s;
	u->announced = o->announced;
	u->prefixes = o->prefixes;
	err = load_any(u, o);
	if (!err)
		err = session_adopt(s, u->skel->obj, bpf_map__fd(u->skel->maps.alloc_ring),
				    MP_CLASS_ALLOC);
	if (err) {
		snprintf(msg, msg_len,
			 "cannot load the probes on allocators: %s; -vv shows libbpf's words, "
			 "--alloc map does without",
			 strerror(-err));
		uprobes_free(&u);
		return err;
	}
	session_watch(s, feed, u);
	*ret_u = u;
	return 0;
}

void uprobes_detach(struct uprobes *u)
{
	processes_detach(&u->procs);
}

void uprobes_free(struct uprobes **u)
{
	size_t i;

	if (!u || !*u)
		return;
	processes_free(&(*u)->procs);
	session_adopt((*u)->s, NULL, -1, MP_CLASS_ALLOC);
	alloc_bpf__destroy((*u)->skel);
	for (i = 0; i < (*u)->nr_files; i++)
		free((*u)->files[i].sites);
	free((*u)->files);
	free(*u);
	*u = NULL;
}

u64 uprobes_silent(const struct uprobes *u, u64 *ret_programs)
{
	*ret_programs = u->programs;
	return u->everywhere && u->programs > u->samplers ? u->programs - u->samplers : 0;
}

const char *uprobes_refused(const struct uprobes *u)
{
	return u->refused[0] ? u->refused : NULL;
}
