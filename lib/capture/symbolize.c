/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "lib/capture/modules.h"
#include "lib/capture/namer.h"
#include "lib/capture/symbolize.h"

struct place {
	u32 space;
	u8 is_return;
	u64 addr;
};

struct space {
	u32 id, pid;
	struct sym_space *sym;
};

struct work {
	struct place *places;
	size_t nr, cap;
	struct space *spaces;
	size_t nr_spaces;
	struct mp_ev_vma *vmas; /* executable ones, with their space */
	u32 *vma_space;
	size_t nr_vmas, cap_vmas;
	struct modules mods;
	struct trace_writer *w;
};

static int add_stack(struct work *k, const struct mp_hdr *rec)
{
	const struct mp_ev_stack *ev = trace_body(rec, stack);
	const u64 *pc = (const u64 *)(ev + 1);
	u32 i;

	if (k->nr + ev->n + 1 > k->cap) {
		size_t cap = (k->cap + ev->n + 1) * 2;
		struct place *places = realloc(k->places, cap * sizeof(*places));

		if (!places)
			return -ENOMEM;
		k->places = places;
		k->cap = cap;
	}
	for (i = 0; i < ev->n; i++) {
		k->places[k->nr].space = rec->space;
		k->places[k->nr].is_return = i > 0;
		k->places[k->nr++].addr = pc[i];
	}
	/* The word on top of the stack may be the innermost frame's return address. */
	if (ev->raw >= 8 && pc[ev->n]) {
		k->places[k->nr].space = rec->space;
		k->places[k->nr].is_return = 1;
		k->places[k->nr++].addr = pc[ev->n];
	}
	return 0;
}

static struct space *space_of(struct work *k, u32 id)
{
	size_t i;

	for (i = 0; i < k->nr_spaces; i++)
		if (k->spaces[i].id == id)
			return &k->spaces[i];
	return NULL;
}

static int add_space(struct work *k, const struct mp_hdr *rec)
{
	struct space *s;

	if (space_of(k, rec->space))
		return 0;
	s = realloc(k->spaces, (k->nr_spaces + 1) * sizeof(*s));
	if (!s)
		return -ENOMEM;
	k->spaces = s;
	s += k->nr_spaces++;
	s->id = rec->space;
	s->pid = trace_body(rec, space)->tgid;
	s->sym = NULL;
	return sym_space_new(&s->sym);
}

static int add_vma(struct work *k, const struct mp_hdr *rec)
{
	const struct mp_ev_vma *v = trace_body(rec, vma);

	if (!(v->flags & MP_VMA_EXEC) || !v->name)
		return 0;
	if (k->nr_vmas == k->cap_vmas) {
		size_t cap = k->cap_vmas ? k->cap_vmas * 2 : 256;
		struct mp_ev_vma *vmas = realloc(k->vmas, cap * sizeof(*vmas));
		u32 *ids = realloc(k->vma_space, cap * sizeof(*ids));

		if (vmas)
			k->vmas = vmas;
		if (ids)
			k->vma_space = ids;
		if (!vmas || !ids)
			return -ENOMEM;
		k->cap_vmas = cap;
	}
	k->vmas[k->nr_vmas] = *v;
	k->vma_space[k->nr_vmas++] = rec->space;
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return y->is_return - x->is_return;
}

static int load(struct work *k, struct trace_reader *r)
{
	const struct mp_hdr *rec;
	int n, err = 0;

	while (!err && (n = trace_reader_next(r, &rec)) > 0) {
		if (rec->type == MP_EV_STACK)
			err = add_stack(k, rec);
		else if (rec->type == MP_EV_SPACE)
			err = add_space(k, rec);
		else if (rec->type == MP_EV_VMA)
			err = add_vma(k, rec);
	}
	return err ? err : n;
}

/* One fd for each file mapped: more than the usual limit when everything is recorded. */
static void allow_files(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int map_all(struct work *k, struct trace_reader *r)
{
	struct space *s = NULL;
	size_t i;
	int err = 0, root = -1, fd;

	allow_files();
	for (i = 0; i < k->nr_vmas && !err; i++) {
		const struct mp_ev_vma *v = &k->vmas[i];
		const char *path = trace_reader_string(r, v->name);

		if (!i || k->vma_space[i] != k->vma_space[i - 1]) {
			s = space_of(k, k->vma_space[i]);
			root = s ? modules_root(&k->mods, (pid_t)s->pid) : -1;
		}
		if (!s || !path)
			continue;
		fd = modules_file(&k->mods, (pid_t)s->pid, root, v, path);
		err = sym_space_map(s->sym, v->start, v->end, v->pgoff, root, fd, path);
		if (err == -EINVAL)
			err = 0;
	}
	return err;
}

static int write_frame(struct trace_writer *w, u32 space, u64 addr, const struct sym_frame *f,
		       u32 frame)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_symbol ev;
	} rec = {0};
	s64 fn = trace_string(w, f->function), mod = trace_string(w, f->module);
	s64 id = trace_string(w, f->build_id), file = trace_string(w, f->file);

	if (fn < 0 || mod < 0 || id < 0 || file < 0)
		return (int)(fn < 0 ? fn : mod < 0 ? mod : id < 0 ? id : file);
	rec.hdr.type = MP_EV_SYMBOL;
	rec.hdr.size = sizeof(rec);
	rec.hdr.space = space;
	rec.ev.addr = addr;
	rec.ev.offset = f->offset;
	rec.ev.function = (u32)fn;
	rec.ev.module = (u32)mod;
	rec.ev.build_id = (u32)id;
	rec.ev.file = (u32)file;
	rec.ev.line = f->line;
	rec.ev.inlined = (u32)f->inlined;
	rec.ev.frame = frame;
	return trace_write(w, &rec.hdr);
}

static int write_place(void *ctx, size_t i, const struct sym_frame *frames, int n, u32 frame)
{
	struct work *k = ctx;
	int j, err = 0;

	for (j = 0; j < n && !err; j++)
		err = write_frame(k->w, k->places[i].space, k->places[i].addr, &frames[j], frame);
	return err;
}

static int write_unnamed(struct work *k, u64 count)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_loss ev;
	} rec = {
		.hdr = {.type = MP_EV_LOSS, .size = sizeof(rec)},
		.ev = {.count = count, .cause = MP_LOSS_NAMES, .cls = MP_CLASS_MAX},
	};

	return trace_write(k->w, &rec.hdr);
}

static int resolve_all(struct work *k, u64 *ret_unnamed)
{
	struct name_place *names;
	struct sym_frame where;
	size_t i, nr = 0;
	int err, fd;

	if (!k->nr)
		return 0;
	qsort(k->places, k->nr, sizeof(*k->places), by_place);
	names = malloc(k->nr * sizeof(*names));
	if (!names)
		return -ENOMEM;
	/* Each place once, and only where something is mapped. */
	for (i = 0; i < k->nr; i++) {
		struct place *at = &k->places[i];
		struct space *s = space_of(k, at->space);

		if (!s || (nr && k->places[nr - 1].space == at->space &&
			   k->places[nr - 1].addr == at->addr))
			continue;
		if (!sym_locate(s->sym, at->addr, at->is_return, &where, &fd))
			continue;
		names[nr].space = s->sym;
		names[nr].addr = at->addr;
		names[nr].is_return = at->is_return;
		k->places[nr++] = *at;
	}
	err = name_all(names, nr, k->mods.fds, k->mods.nr_fds, write_place, k, ret_unnamed);
	free(names);
	if (!err && *ret_unnamed)
		err = write_unnamed(k, *ret_unnamed);
	return err;
}

int symbolize(const char *path, struct trace_writer *w, u64 *ret_unnamed)
{
	struct trace_reader *r = NULL;
	struct work k = {.w = w};
	size_t i;
	int err = trace_reader_open(path, &r);

	*ret_unnamed = 0;
	if (!err)
		err = load(&k, r);
	if (!err)
		err = map_all(&k, r);
	if (!err)
		err = resolve_all(&k, ret_unnamed);
	for (i = 0; i < k.nr_spaces; i++)
		sym_space_free(&k.spaces[i].sym);
	modules_release(&k.mods);
	free(k.spaces);
	free(k.places);
	free(k.vmas);
	free(k.vma_space);
	trace_reader_close(&r);
	return err;
}
