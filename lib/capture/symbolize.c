/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/capture/symbolize.h"
#include "lib/sym/sym.h"

#define MAX_INLINE 32

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

static int map_all(struct work *k, struct trace_reader *r)
{
	size_t i;
	int err = 0;

	for (i = 0; i < k->nr_vmas && !err; i++) {
		struct space *s = space_of(k, k->vma_space[i]);
		const char *path = trace_reader_string(r, k->vmas[i].name);
		char root[64];

		if (!s || !path)
			continue;
		snprintf(root, sizeof(root), "/proc/%u/root", s->pid);
		if (access(root, X_OK))
			root[0] = 0;
		err = sym_space_map(s->sym, k->vmas[i].start, k->vmas[i].end, k->vmas[i].pgoff,
				    root, path);
		if (err == -EINVAL)
			err = 0;
	}
	return err;
}

static int write_frame(struct trace_writer *w, const struct place *at, const struct sym_frame *f,
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
	rec.hdr.space = at->space;
	rec.ev.addr = at->addr;
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

static int resolve_all(struct work *k, struct trace_writer *w)
{
	struct sym_frame frames[MAX_INLINE];
	size_t i;
	int err = 0;

	if (k->nr)
		qsort(k->places, k->nr, sizeof(*k->places), by_place);
	for (i = 0; i < k->nr && !err; i++) {
		struct place *at = &k->places[i];
		struct space *s = space_of(k, at->space);
		int n, j;

		if (!s || (i && at[-1].space == at->space && at[-1].addr == at->addr))
			continue;
		n = sym_resolve(s->sym, at->addr, at->is_return, frames, MAX_INLINE);
		for (j = 0; j < n && !err; j++)
			err = write_frame(w, at, &frames[j],
					  (u32)sym_unwind(s->sym, at->addr, at->is_return));
	}
	return err;
}

int symbolize(const char *path, struct trace_writer *w)
{
	struct trace_reader *r = NULL;
	struct work k = {0};
	size_t i;
	int err = trace_reader_open(path, &r);

	if (!err)
		err = load(&k, r);
	if (!err)
		err = map_all(&k, r);
	if (!err)
		err = resolve_all(&k, w);
	for (i = 0; i < k.nr_spaces; i++)
		sym_space_free(&k.spaces[i].sym);
	free(k.spaces);
	free(k.places);
	free(k.vmas);
	free(k.vma_space);
	trace_reader_close(&r);
	return err;
}
