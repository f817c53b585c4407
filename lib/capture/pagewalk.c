/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/walk.h"
#include "lib/capture/calibrate.h"
#include "lib/capture/nodes.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/picture.h"
#include "walk.skel.h"

#define BUDGET_NS 1000000ull /* of one pass: half the promised longest hold */
#define MAX_TRIES 3

struct pagewalk {
	struct walk_bpf *skel;
	struct bpf_link *link; /* of the task walked last */
	pid_t tid;
	const struct mp_walk_run *runs;
	const struct mp_walk_vma *vmas;
	u64 zero_pfn;
};

/* ---- one pass ---- */

static int link_to(struct pagewalk *w, pid_t tid)
{
	union bpf_iter_link_info info = {.task.tid = (__u32)tid};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	if (w->link && w->tid == tid)
		return 0;
	bpf_link__destroy(w->link);
	w->link = bpf_program__attach_iter(w->skel->progs.walk_pass, &opts);
	w->tid = tid;
	return w->link ? 0 : -errno;
}

static int run_iter(int link_fd)
{
	int fd = bpf_iter_create(link_fd), err = 0;
	char buf[64];
	ssize_t n;

	if (fd < 0)
		return -errno;
	do
		n = read(fd, buf, sizeof(buf));
	while (n > 0 || (n < 0 && errno == EINTR));
	/* EAGAIN: the program ended the pass itself. */
	if (n < 0 && errno != EAGAIN)
		err = -errno;
	close(fd);
	return err;
}

static int pass(struct pagewalk *w, const struct picture *p, u64 cursor)
{
	struct walk_bpf__bss *b = w->skel->bss;
	int err;

	b->walk_cursor = cursor;
	b->walk_limit = p->to;
	b->walk_accessed = (u32)p->env->accessed;
	b->walk_budget_ns = BUDGET_NS;
	b->walk_next = ~0ull;
	b->walk_deadline = 0;
	b->walk_nr_runs = 0;
	b->walk_nr_vmas = 0;
	b->walk_failed = 0;
	b->walk_tables = 0;
	err = run_iter(bpf_link__fd(w->link));
	return err ? err : b->walk_failed ? -EIO : 0;
}

/* ---- names: the tables know none ---- */

struct names {
	struct vma *v;
	size_t n, cap;
};

static int names_read(struct picture *p, pid_t tid, const char *file, struct names *n)
{
	FILE *f = proc_open(tid, file);
	unsigned long long swap;
	char *line = NULL;
	size_t room = 0;
	struct vma v;

	n->n = 0;
	if (!f)
		return proc_error();
	while (getline(&line, &room, f) > 0) {
		if (vma_line(p, line, &v)) {
			if (n->n == n->cap) {
				size_t cap = n->cap ? n->cap * 2 : 256;
				struct vma *more = realloc(n->v, cap * sizeof(*more));

				if (!more) {
					free(line);
					fclose(f);
					return -ENOMEM;
				}
				n->v = more;
				n->cap = cap;
			}
			n->v[n->n++] = v;
		} else if (n->n && sscanf(line, "Swap: %llu kB", &swap) == 1) {
			n->v[n->n - 1].swap = swap * 1024;
		}
	}
	free(line);
	fclose(f);
	return 0;
}

static const struct vma *names_find(const struct names *n, u64 start, u64 end)
{
	size_t lo = 0, hi = n->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (n->v[mid].start == start)
			return n->v[mid].end == end ? &n->v[mid] : NULL;
		if (n->v[mid].start < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* ---- passes into a picture ---- */

struct object { /* a tmpfs object with swapped pages: smaps knows how many are under this VMA */
	s64 at;
	u64 start, end, anon_swap;
};

struct walk {
	struct pagewalk *w;
	struct picture *p;
	pid_t tid;
	struct names names;
	struct object *objects;
	size_t nr_objects;
	u64 last_start, last_end; /* the VMA whose record was put last */
	s64 last_at;
};

static u32 vma_flags(const struct mp_walk_vma *v)
{
	static const struct {
		u64 vm;
		u32 flag;
	} map[] = {{0x1, MP_VMA_READ},		 {0x2, MP_VMA_WRITE},
		   {0x4, MP_VMA_EXEC},		 {0x8, MP_VMA_SHARED},
		   {0x100, MP_VMA_STACK},	 {0x400, MP_VMA_PFNMAP},
		   {0x4000, MP_VMA_PFNMAP},	 {0x400000, MP_VMA_HUGETLB},
		   {0x200000, MP_VMA_NORESERVE}, {0x40000000, MP_VMA_NOHUGE}};
	u32 flags = v->is_shmem ? MP_VMA_SHMEM : 0;
	unsigned int i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (v->vm_flags & map[i].vm)
			flags |= map[i].flag;
	return flags;
}

/* A VMA that goes on in this pass, or begins with it because the last one met it out of time, has
 * its record already, unless its extent changed. */
static int put_vma(struct walk *k, const struct mp_walk_vma *v, u64 cursor)
{
	struct vma out = {.start = v->start, .end = v->end};
	const struct vma *named;

	if (v->start <= cursor && k->last_end == v->end && k->last_start == v->start)
		return 0;
	named = names_find(&k->names, v->start, v->end);
	if (!named) {
		int err = names_read(k->p, k->tid, "maps", &k->names);

		if (err)
			return err;
		named = names_find(&k->names, v->start, v->end);
	}
	if (named)
		out = *named;
	if (out.start < cursor) {
		out.pgoff += cursor - out.start;
		out.start = cursor;
	}
	out.flags = (out.flags & ~(u32)MP_VMA_SHMEM) | vma_flags(v); /* the object knows, no name */
	k->last_at = picture_vma(k->p, &out);
	k->last_start = v->start;
	k->last_end = v->end;
	if (k->last_at < 0)
		return (int)k->last_at;
	if (v->object_swap) {
		struct object *o = realloc(k->objects, (k->nr_objects + 1) * sizeof(*k->objects));

		if (!o)
			return -ENOMEM;
		k->objects = o;
		o[k->nr_objects++] =
			(struct object){.at = k->last_at, .start = v->start, .end = v->end};
	}
	return 0;
}

/* Is this frame without an owner the zero page? Then it is in nobody's Rss. 0: not even that. */
static u32 ask(struct pagewalk *w, u64 pfn, u32 flags)
{
	u64 kpf;

	flags &= ~MP_WALK_ASK;
	if (pfn && pfn == w->zero_pfn)
		return MP_PAGE_ZERO;
	kpf = kpage_flags(pfn);
	if (kpf == ~0ull || !(kpf & (1ull << KPF_ZERO_PAGE)))
		return flags; /* 0 for a special entry */
	w->zero_pfn = pfn;
	return MP_PAGE_ZERO | (flags & MP_PAGE_THP);
}

static int put_run(struct walk *k, const struct mp_walk_run *r)
{
	u32 flags = r->flags;

	if (flags & MP_WALK_ASK)
		flags = ask(k->w, r->pfn, flags);
	if (flags & MP_PAGE_SWAPPED && k->nr_objects &&
	    k->objects[k->nr_objects - 1].at == k->last_at)
		k->objects[k->nr_objects - 1].anon_swap += r->pages * MP_PAGE_SIZE;
	if (!(flags & (MP_PAGE_RESIDENT | MP_PAGE_SWAPPED | MP_PAGE_ZERO | MP_PAGE_HUGETLB)))
		return 0;
	return picture_run(k->p, r->start, r->pages, flags, flags & MP_PAGE_ZERO ? 1 : r->mapcount,
			   flags & MP_PAGE_ZERO ? ~0u : r->node, r->pfn);
}

static int put_pass(struct walk *k, u64 cursor)
{
	const struct mp_walk_vma *v = k->w->vmas;
	u32 i, j;
	int err = 0;

	for (i = 0; i < k->w->skel->bss->walk_nr_vmas && !err; i++, v++) {
		err = put_vma(k, v, cursor);
		for (j = 0; j < v->nr_runs && !err; j++)
			err = put_run(k, &k->w->runs[v->first_run + j]);
	}
	return err ? err : picture_flush(k->p);
}

/* shmem swap is not in page tables [the object knows it]; smaps counts it per VMA. */
static int put_objects(struct walk *k)
{
	const struct vma *v;
	size_t i;
	int err;

	if (!k->nr_objects)
		return 0;
	err = names_read(k->p, k->tid, "smaps", &k->names);
	for (i = 0; i < k->nr_objects && !err; i++) {
		v = names_find(&k->names, k->objects[i].start, k->objects[i].end);
		if (v && v->swap > k->objects[i].anon_swap)
			picture_object_swap(k->p, k->objects[i].at,
					    v->swap - k->objects[i].anon_swap);
	}
	return err;
}

/* A pass during which the process mapped or unmapped is read again. */
static int walk_chunks(struct walk *k)
{
	const struct snapshot_env *env = k->p->env;
	u64 cursor = k->p->from, seq, ops;
	u32 tries;
	int err = 0;

	while (!err && cursor < k->p->to) {
		for (tries = 0;; tries++) {
			ops = env->map_ops(env->ctx, k->p->space);
			seq = env->seq(env->ctx);
			err = pass(k->w, k->p, cursor);
			if (err || tries == MAX_TRIES || ops == env->map_ops(env->ctx, k->p->space))
				break;
		}
		if (!err)
			err = picture_chunk(k->p, seq, cursor);
		if (!err)
			err = put_pass(k, cursor);
		cursor = k->w->skel->bss->walk_next;
		if (!err)
			picture_chunk_end(k->p, env->seq(env->ctx), cursor, tries);
	}
	return err;
}

int walk_by_tables(struct picture *p, pid_t tid)
{
	struct walk k = {.w = p->env->walker, .p = p, .tid = tid};
	int err = link_to(k.w, tid);

	if (!err)
		err = names_read(p, tid, "maps", &k.names);
	if (!err && !k.names.n)
		err = -ESRCH; /* the process let its mm go */
	k.w->skel->bss->walk_hold_ns = 0;
	k.w->skel->bss->walk_handed = 0;
	if (!err)
		err = walk_chunks(&k);
	if (!err)
		err = put_objects(&k);
	p->hold_ns = k.w->skel->bss->walk_hold_ns;
	p->handed = k.w->skel->bss->walk_handed;
	free(k.names.v);
	free(k.objects);
	return err;
}

/* ---- opening ---- */

static int try_load(struct pagewalk *w, const struct calibration *c, u32 cast)
{
	struct nodes nodes;

	w->skel = walk_bpf__open();
	if (!w->skel)
		return -errno;
	bpf_program__set_autoload(w->skel->progs.calibrate, false);
	w->skel->rodata->cfg_direct = c->direct;
	w->skel->rodata->cfg_vmemmap = c->vmemmap;
	w->skel->rodata->cfg_frame_mask = c->frame_mask;
	w->skel->rodata->cfg_levels = c->levels;
	w->skel->rodata->cfg_cast = cast;
	nodes_read("/proc/zoneinfo", &nodes);
	w->skel->rodata->cfg_nr_nodes = nodes.n;
	memcpy((void *)w->skel->rodata->cfg_nodes, nodes.range, sizeof(nodes.range));
	return walk_bpf__load(w->skel);
}

static int load(struct pagewalk *w, const struct calibration *c)
{
	int err = try_load(w, c, 1);

	if (err) {
		walk_bpf__destroy(w->skel);
		err = try_load(w, c, 0);
	}
	if (err)
		return err;
	w->runs = mmap(NULL, MP_WALK_MAX_RUNS * sizeof(*w->runs), PROT_READ, MAP_SHARED,
		       bpf_map__fd(w->skel->maps.walk_runs), 0);
	w->vmas = mmap(NULL, MP_WALK_MAX_VMAS * sizeof(*w->vmas), PROT_READ, MAP_SHARED,
		       bpf_map__fd(w->skel->maps.walk_vmas), 0);
	return w->runs == MAP_FAILED || w->vmas == MAP_FAILED ? -errno : 0;
}

int pagewalk_open(char *msg, size_t msg_len, struct pagewalk **ret_w)
{
	struct pagewalk *w = calloc(1, sizeof(*w));
	struct calibration c;
	int err;

	if (!w)
		return -ENOMEM;
	w->runs = MAP_FAILED;
	w->vmas = MAP_FAILED;
	err = calibrate(&c, msg, msg_len);
	if (!err) {
		err = load(w, &c);
		if (err)
			snprintf(msg, msg_len, "the kernel refused the walk: %s", strerror(-err));
	}
	if (!err)
		err = calibration_prove(w, msg, msg_len);
	if (err)
		pagewalk_close(&w);
	else
		*ret_w = w;
	return err;
}

void pagewalk_frames(const struct pagewalk *w, u64 *ret_vmemmap, u64 *ret_mask)
{
	*ret_vmemmap = w->skel->rodata->cfg_vmemmap;
	*ret_mask = w->skel->rodata->cfg_frame_mask;
}

void pagewalk_close(struct pagewalk **w)
{
	if (!w || !*w)
		return;
	if ((*w)->runs != MAP_FAILED)
		munmap((void *)(*w)->runs, MP_WALK_MAX_RUNS * sizeof(*(*w)->runs));
	if ((*w)->vmas != MAP_FAILED)
		munmap((void *)(*w)->vmas, MP_WALK_MAX_VMAS * sizeof(*(*w)->vmas));
	bpf_link__destroy((*w)->link);
	walk_bpf__destroy((*w)->skel);
	free(*w);
	*w = NULL;
}
