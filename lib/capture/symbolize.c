/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "bpf/shared/python.h"
#include "lib/capture/changes.h"
#include "lib/capture/copies.h"
#include "lib/capture/modules.h"
#include "lib/capture/namer.h"
#include "lib/capture/seen.h"
#include "lib/capture/symbolize.h"

struct place {
	u32 space;
	u8 is_return;
	u64 addr;
	u64 seq; /* of its stack */
	struct sym_spot spot;
};

struct space {
	u32 id, pid;
	u32 members, ended; /* ended: runs since the last one left */
	u32 walk, walk_before; /* its latest two pictures */
	struct changes changes;
	int root, has_root;
	int jit, has_jit; /* perf-PID.map */
	struct sym_space *sym;
};

/* An executable mapping, as a picture has it. */
struct code {
	u32 space;
	u64 seq;
	struct mp_ev_vma ev;
	const char *path;
};

struct symbolizer {
	struct place *places; /* of the stacks since the last run */
	size_t nr, cap;
	struct space *spaces;
	size_t nr_spaces;
	struct code *code; /* since the last run */
	size_t nr_code, cap_code;
	struct seen_set seen;
	struct copies copies; /* of the stacks since the last run */
	struct modules mods;
	struct sym_files *files;
	const struct place **first; /* of each spot asked for */
	u64 unnamed;
	struct trace_writer *w;
};

/* What is remembered, by kind: keys of two kinds, or of two spaces, must not be equal by their
 * making. A collision of 64 bits costs a name. What is noted: a mapping's latest picture, a space's
 * number, a place's 1. */
enum { KEY_PC = 1, KEY_RETURN, KEY_NAMED, KEY_VMA, KEY_SPACE };

/* 1: for the first time, 0: again, or -ENOMEM. */
static int first_time(struct symbolizer *k, u32 space, u64 key)
{
	struct seen *s = seen_get(&k->seen, space, key);
	int first = s && !s->note;

	if (s)
		s->note = 1;
	return s ? first : -ENOMEM;
}

static struct space *space_of(struct symbolizer *k, u32 id)
{
	const struct seen *s = seen_find(&k->seen, seen_key(KEY_SPACE, id, 0));

	return s && s->note ? &k->spaces[s->note - 1] : NULL;
}

static int add_place(struct symbolizer *k, const struct mp_hdr *rec, u64 addr, u8 is_return)
{
	const struct space *s = space_of(k, rec->space);
	u64 what = seen_mix(addr, s ? s->changes.nr : 0);
	int first = first_time(k, rec->space,
			       seen_key(is_return ? KEY_RETURN : KEY_PC, rec->space, what));

	if (first <= 0)
		return first;
	if (k->nr == k->cap) {
		size_t cap = k->cap ? k->cap * 2 : 1024;
		struct place *places = realloc(k->places, cap * sizeof(*places));

		if (!places)
			return -ENOMEM;
		k->places = places;
		k->cap = cap;
	}
	k->places[k->nr++] = (struct place){
		.space = rec->space, .is_return = is_return, .addr = addr, .seq = rec->seq};
	return 0;
}

static int add_stack(struct symbolizer *k, const struct mp_hdr *rec)
{
	const struct mp_ev_stack *ev = trace_body(rec, stack);
	const u64 *pc = (const u64 *)(ev + 1);
	int err = 0;
	u32 i;

	for (i = 0; i < ev->n && !err; i++)
		if (!(pc[i] & MP_PYTHON_FRAME)) /* which pycode.c names */
			err = add_place(k, rec, pc[i], i > 0);
	/* The word on top of the stack may be the innermost frame's return address. */
	if (!err && ev->raw == 8 && pc[ev->n])
		err = add_place(k, rec, pc[ev->n], 1);
	return err || !copy_is(ev) ? err : copies_add(&k->copies, rec);
}

static int add_space(struct symbolizer *k, const struct mp_hdr *rec)
{
	struct seen *seen = seen_get(&k->seen, rec->space, seen_key(KEY_SPACE, rec->space, 0));
	struct space *s;

	if (!seen)
		return -ENOMEM;
	if (seen->note) {
		k->spaces[seen->note - 1].members++;
		return 0;
	}
	s = realloc(k->spaces, (k->nr_spaces + 1) * sizeof(*s));
	if (!s)
		return -ENOMEM;
	k->spaces = s;
	s += k->nr_spaces++;
	seen->note = (u32)k->nr_spaces;
	memset(s, 0, sizeof(*s));
	s->id = rec->space;
	s->pid = trace_body(rec, space)->tgid;
	s->members = 1;
	return sym_space_new(k->files, &s->sym);
}

static void leave_space(struct symbolizer *k, u32 id)
{
	struct space *s = space_of(k, id);

	if (s && s->members)
		s->members--;
}

static int add_vma(struct symbolizer *k, const struct mp_hdr *rec, const char *path)
{
	const struct mp_ev_vma *v = trace_body(rec, vma);

	if (!(v->flags & MP_VMA_EXEC))
		return 0;
	if (!path)
		path = SYM_JIT;
	if (k->nr_code == k->cap_code) {
		size_t cap = k->cap_code ? k->cap_code * 2 : 256;
		struct code *code = realloc(k->code, cap * sizeof(*code));

		if (!code)
			return -ENOMEM;
		k->code = code;
		k->cap_code = cap;
	}
	k->code[k->nr_code++] =
		(struct code){.space = rec->space, .seq = rec->seq, .ev = *v, .path = path};
	return 0;
}

static int add_change(struct symbolizer *k, const struct mp_hdr *rec)
{
	struct space *s = space_of(k, rec->space);

	return s ? changes_add(&s->changes, rec) : 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return y->is_return - x->is_return ? y->is_return - x->is_return
	       : x->seq < y->seq	   ? -1
					   : x->seq > y->seq;
}

int symbolizer_feed(struct symbolizer *k, const struct mp_hdr *rec, const char *path)
{
	if (rec->type == MP_EV_STACK)
		return add_stack(k, rec);
	if (rec->type == MP_EV_SPACE)
		return add_space(k, rec);
	if (rec->type == MP_EV_SPACE_END)
		leave_space(k, rec->space);
	if (rec->type == MP_EV_MAP)
		return add_change(k, rec);
	return rec->type == MP_EV_VMA ? add_vma(k, rec, path) : 0;
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

/* Was it there in the space's picture before? Then it is mapped already, and what took its place in
 * between is not known. */
static int is_mapped(struct symbolizer *k, struct space *s, const struct mp_ev_vma *v)
{
	u64 what =
		seen_mix(seen_mix(seen_mix(seen_mix(v->start, v->end), v->pgoff), v->ino), v->name);
	struct seen *seen = seen_get(&k->seen, s->id, seen_key(KEY_VMA, s->id, what));
	int mapped;

	if (!seen)
		return -ENOMEM;
	if (s->walk != v->walk) {
		s->walk_before = s->walk;
		s->walk = v->walk;
	}
	mapped = seen->note && seen->note == s->walk_before;
	seen->note = v->walk;
	return mapped;
}

/* Asked for once in a run: the runtime writes on. */
static int jit_map(struct symbolizer *k, struct space *s)
{
	if (!s->has_jit)
		s->jit = modules_perf_map(&k->mods, (pid_t)s->pid, s->root);
	s->has_jit = 1;
	return s->jit;
}

static int map_one(struct symbolizer *k, struct space *s, const struct code *c)
{
	const struct mp_ev_vma *v = &c->ev;
	int fd, err;

	if (!s->has_root) {
		s->root = modules_root(&k->mods, (pid_t)s->pid);
		s->has_root = 1;
	}
	fd = !strcmp(c->path, SYM_JIT) ? jit_map(k, s)
				       : modules_file(&k->mods, (pid_t)s->pid, s->root, v, c->path);
	err = sym_space_map(s->sym, v->start, v->end, v->pgoff, s->root, fd, c->path);
	return err == -EINVAL ? 0 : err;
}

static int map_all(struct symbolizer *k)
{
	struct space *s = NULL;
	int err = 0, mapped;
	size_t i;

	allow_files();
	for (i = 0; i < k->nr_code && !err; i++) {
		const struct code *c = &k->code[i];

		if (!s || s->id != c->space)
			s = space_of(k, c->space);
		if (s)
			changes_see(&s->changes, c->seq, &c->ev);
		mapped = s ? is_mapped(k, s, &c->ev) : 1;
		err = mapped < 0 ? mapped : mapped ? 0 : map_one(k, s, c);
	}
	k->nr_code = 0;
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
	rec.ev.since = at->seq;
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

/* What the code at a spot is called it is in every space that maps it. */
static int write_spot(void *ctx, size_t i, const struct sym_frame *frames, int n, u32 frame,
		      int given_up)
{
	struct symbolizer *k = ctx;
	const struct place *at;
	int j, err = 0;

	for (at = k->first[i]; at < k->first[i + 1]; at++) {
		for (j = 0; j < n && !err; j++)
			err = write_frame(k->w, at, &frames[j], frame);
		k->unnamed += !!given_up;
	}
	return err;
}

static int write_loss(struct symbolizer *k, u32 cause, u64 count)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_loss ev;
	} rec = {
		.hdr = {.type = MP_EV_LOSS, .size = sizeof(rec)},
		.ev = {.count = count, .cause = cause, .cls = MP_CLASS_MAX},
	};

	return count ? trace_write(k->w, &rec.hdr) : 0;
}

/* The frames of a copied stack take the place of those that were found without the copy, when they
 * lead further. Where other code was mapped since, its tables have led astray. */
static int put_frames(void *ctx, const struct mp_hdr *old, const u64 *pc, u32 n, u32 end)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_stack ev;
		u64 pc[MP_STACK_DEPTH];
	} rec = {.hdr = *old, .ev = *trace_body(old, stack)};
	struct symbolizer *k = ctx;
	const struct space *s = space_of(k, old->space);
	const u64 *had = (const u64 *)(trace_body(old, stack) + 1);
	const struct change *last;
	u32 i, found;
	int err = 0;

	for (i = 0; i < n; i++) {
		last = s ? changes_last(&s->changes, pc[i]) : NULL;
		if (last && last->seq > old->seq) {
			n = i + 1;
			end = MP_STACK_CUT;
		}
		rec.pc[i] = pc[i];
	}
	found = n;
	/* Python's frames lie behind the others. */
	for (i = 0; i < rec.ev.n && n < MP_STACK_DEPTH; i++)
		if (had[i] & MP_PYTHON_FRAME)
			rec.pc[n++] = had[i];
	if (end == MP_STACK_CUT && n <= rec.ev.n)
		return 0;
	rec.ev.n = (u16)n;
	rec.ev.raw = 0;
	rec.ev.method = MP_UNWIND_COPY;
	rec.ev.truncated = (u8)end;
	rec.ev.by_fp0 = rec.ev.by_fp1 = 0;
	rec.hdr.size = (u16)(sizeof(rec.hdr) + sizeof(rec.ev) + n * sizeof(u64));
	err = trace_write(k->w, &rec.hdr);
	for (i = 0; i < found && !err; i++)
		err = add_place(k, old, pc[i], i > 0);
	return err;
}

static int unwind_copies(struct symbolizer *k)
{
	size_t i;
	int err;

	for (i = 0; i < k->copies.nr; i++) {
		const struct space *s = space_of(k, k->copies.items[i].rec->space);

		k->copies.items[i].space = s ? s->sym : NULL;
	}
	err = copies_unwind(&k->copies, k->mods.fds, k->mods.nr_fds, put_frames, k);
	if (!err)
		err = write_loss(k, MP_LOSS_COPIES, k->copies.left_out);
	copies_clear(&k->copies);
	return err;
}

/* Each place once, and only where something is mapped. */
static void locate_all(struct symbolizer *k)
{
	size_t i, nr = 0;

	qsort(k->places, k->nr, sizeof(*k->places), by_place);
	for (i = 0; i < k->nr; i++) {
		struct place *at = &k->places[i];
		struct space *s = space_of(k, at->space);
		const struct change *last = s ? changes_last(&s->changes, at->addr) : NULL;

		/* Other code then, or which is not known: nobody's name is given. */
		if (last && (!last->seen || at->seq < last->seq))
			continue;
		at->seq = last ? last->seq : 0; /* names hold from here on */
		if (!s || !sym_locate(s->sym, at->addr, at->is_return, &at->spot))
			continue;
		/* A pc and a return address may be the same number. */
		if (first_time(k, at->space,
			       seen_key(KEY_NAMED, at->space, seen_mix(at->addr, at->seq))) <= 0)
			continue;
		k->places[nr++] = *at;
	}
	k->nr = nr;
}

static int cmp_spot(const struct sym_spot *x, const struct sym_spot *y)
{
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->is_return - y->is_return;
}

static int by_spot(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int d = cmp_spot(&x->spot, &y->spot);

	return d ? d : by_place(a, b);
}

/* A thousand spaces that run one program ask once. */
static int resolve_all(struct symbolizer *k)
{
	struct sym_spot *spots;
	size_t i, nr = 0;
	int err = -ENOMEM;

	if (!k->nr)
		return 0;
	locate_all(k);
	qsort(k->places, k->nr, sizeof(*k->places), by_spot);
	spots = malloc((k->nr + 1) * sizeof(*spots));
	k->first = malloc((k->nr + 1) * sizeof(const struct place *));
	if (spots && k->first) {
		for (i = 0; i < k->nr; i++) {
			if (nr && !cmp_spot(&spots[nr - 1], &k->places[i].spot))
				continue;
			k->first[nr] = &k->places[i];
			spots[nr++] = k->places[i].spot;
		}
		k->first[nr] = &k->places[k->nr];
		err = name_all(k->files, spots, nr, k->mods.fds, k->mods.nr_fds, write_spot, k);
	}
	free(spots);
	free(k->first);
	k->first = NULL;
	if (!err)
		err = write_loss(k, MP_LOSS_NAMES, k->unnamed);
	return err;
}

/* Stacks of a fault may be read behind the end of their process: the run after that has them. */
static int is_over(const struct space *s)
{
	return !s || s->ended > 1;
}

static int is_kept(void *ctx, u32 space)
{
	return !is_over(space_of(ctx, space));
}

/* A recording goes on while processes come and go: once half of them are over, all that is
 * remembered of those is forgotten. */
static int forget_ended(struct symbolizer *k)
{
	size_t i, n = 0;
	int err;

	for (i = 0; i < k->nr_spaces; i++) {
		k->spaces[i].ended += !k->spaces[i].members;
		n += is_over(&k->spaces[i]);
	}
	if (n < 64 || n * 2 < k->nr_spaces)
		return 0;
	err = seen_keep(&k->seen, is_kept, k);
	if (err)
		return err;
	for (i = n = 0; i < k->nr_spaces; i++) {
		if (is_over(&k->spaces[i])) {
			changes_release(&k->spaces[i].changes);
			sym_space_free(&k->spaces[i].sym);
			continue;
		}
		k->spaces[n++] = k->spaces[i];
		seen_find(&k->seen, seen_key(KEY_SPACE, k->spaces[i].id, 0))->note = (u32)n;
	}
	k->nr_spaces = n;
	return 0;
}

int symbolizer_run(struct symbolizer *k, struct trace_writer *w, u64 *ret_unnamed)
{
	int err = map_all(k);

	k->w = w;
	k->unnamed = 0;
	if (!err)
		err = unwind_copies(k);
	if (!err)
		err = resolve_all(k);
	k->nr = 0;
	*ret_unnamed = k->unnamed;
	return err ? err : forget_ended(k);
}

int symbolizer_new(struct symbolizer **ret_k)
{
	struct symbolizer *k = calloc(1, sizeof(*k));
	int err = k ? sym_files_new(&k->files) : -ENOMEM;

	if (err)
		free(k);
	else
		*ret_k = k;
	return err;
}

void symbolizer_free(struct symbolizer **kp)
{
	struct symbolizer *k = *kp;
	size_t i;

	if (!k)
		return;
	for (i = 0; i < k->nr_spaces; i++) {
		changes_release(&k->spaces[i].changes);
		sym_space_free(&k->spaces[i].sym);
	}
	sym_files_free(&k->files);
	modules_release(&k->mods);
	free(k->spaces);
	free(k->places);
	free(k->code);
	seen_release(&k->seen);
	copies_clear(&k->copies);
	free(k);
	*kp = NULL;
}

static int load(struct symbolizer *k, struct trace_reader *r)
{
	const struct mp_hdr *rec;
	int n, err = 0;

	while (!err && (n = trace_reader_next(r, &rec)) > 0)
		err = symbolizer_feed(k, rec,
				      rec->type == MP_EV_VMA
					      ? trace_reader_string(r, trace_body(rec, vma)->name)
					      : NULL);
	return err ? err : n;
}

int symbolize(const char *path, struct trace_writer *w, u64 *ret_unnamed)
{
	struct trace_reader *r = NULL;
	struct symbolizer *k = NULL;
	int err = trace_reader_open(path, &r);

	*ret_unnamed = 0;
	if (!err)
		err = symbolizer_new(&k);
	if (!err)
		err = load(k, r);
	if (!err)
		err = symbolizer_run(k, w, ret_unnamed);
	symbolizer_free(&k);
	trace_reader_close(&r);
	return err;
}
