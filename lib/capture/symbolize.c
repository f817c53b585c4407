/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "bpf/shared/python.h"
#include "lib/capture/modules.h"
#include "lib/capture/namer.h"
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
	struct change *changes;
	u32 nr_changes;
	int root, has_root;
	int jit, has_jit; /* perf-PID.map */
	struct sym_space *sym;
};

/* Code of a file was mapped: what was there before is called otherwise. */
struct change {
	u64 start, end, seq;
	int seen; /* a picture has said what it is */
};

/* An executable mapping, as a picture has it. */
struct code {
	u32 space;
	u64 seq;
	struct mp_ev_vma ev;
	const char *path;
};

struct seen {
	u64 key; /* 0: empty */
	u32 walk; /* a mapping's latest picture, a space's number, a place's 1; 0: new */
	u32 space; /* it is forgotten with */
};

struct symbolizer {
	struct place *places; /* of the stacks since the last run */
	size_t nr, cap;
	struct space *spaces;
	size_t nr_spaces;
	struct code *code; /* since the last run */
	size_t nr_code, cap_code;
	struct seen *seen; /* open addressing */
	size_t nr_seen, cap_seen;
	struct modules mods;
	struct sym_files *files;
	const struct place **first; /* of each spot asked for */
	u64 unnamed;
	struct trace_writer *w;
};

static u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

static struct seen *slot_of(struct seen *set, size_t cap, u64 key)
{
	size_t i = key & (cap - 1);

	while (set[i].key && set[i].key != key)
		i = (i + 1) & (cap - 1);
	return &set[i];
}

static int grow_seen(struct symbolizer *k)
{
	size_t cap = k->cap_seen ? k->cap_seen * 2 : 4096, i;
	struct seen *set = calloc(cap, sizeof(*set));

	if (!set)
		return -ENOMEM;
	for (i = 0; i < k->cap_seen; i++)
		if (k->seen[i].key)
			*slot_of(set, cap, k->seen[i].key) = k->seen[i];
	free(k->seen);
	k->seen = set;
	k->cap_seen = cap;
	return 0;
}

/* What is remembered, by kind: keys of two kinds, or of two spaces, must not be equal by their
 * making. 0 is no key. A collision of 64 bits costs a name. */
enum { KEY_PC = 1, KEY_RETURN, KEY_NAMED, KEY_VMA, KEY_SPACE };

static u64 key_of(u32 kind, u32 space, u64 v)
{
	u64 key = mix(mix(mix(0, kind), space), v);

	return key + !key;
}

/* NULL: no memory. */
static struct seen *look_up(struct symbolizer *k, u32 space, u64 key)
{
	struct seen *s;

	if (k->nr_seen * 2 >= k->cap_seen && grow_seen(k))
		return NULL;
	s = slot_of(k->seen, k->cap_seen, key);
	k->nr_seen += !s->key;
	s->key = key;
	s->space = space;
	return s;
}

/* 1: for the first time, 0: again, or -ENOMEM. */
static int first_time(struct symbolizer *k, u32 space, u64 key)
{
	struct seen *s = look_up(k, space, key);
	int first = s && !s->walk;

	if (s)
		s->walk = 1;
	return s ? first : -ENOMEM;
}

static struct space *space_of(struct symbolizer *k, u32 id)
{
	const struct seen *s =
		k->cap_seen ? slot_of(k->seen, k->cap_seen, key_of(KEY_SPACE, id, 0)) : NULL;

	return s && s->walk ? &k->spaces[s->walk - 1] : NULL;
}

static int add_place(struct symbolizer *k, const struct mp_hdr *rec, u64 addr, u8 is_return)
{
	const struct space *s = space_of(k, rec->space);
	u64 what = mix(addr, s ? s->nr_changes : 0);
	int first = first_time(k, rec->space,
			       key_of(is_return ? KEY_RETURN : KEY_PC, rec->space, what));

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
	if (!err && ev->raw >= 8 && pc[ev->n])
		err = add_place(k, rec, pc[ev->n], 1);
	return err;
}

static int add_space(struct symbolizer *k, const struct mp_hdr *rec)
{
	struct seen *seen = look_up(k, rec->space, key_of(KEY_SPACE, rec->space, 0));
	struct space *s;

	if (!seen)
		return -ENOMEM;
	if (seen->walk) {
		k->spaces[seen->walk - 1].members++;
		return 0;
	}
	s = realloc(k->spaces, (k->nr_spaces + 1) * sizeof(*s));
	if (!s)
		return -ENOMEM;
	k->spaces = s;
	s += k->nr_spaces++;
	seen->walk = (u32)k->nr_spaces;
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
	const struct mp_ev_map *m = trace_body(rec, map);
	struct space *s = space_of(k, rec->space);
	struct change *more;

	if (!s || m->kind != MP_MAP_MMAP || !(m->prot & PROT_EXEC) || m->flags & MAP_ANONYMOUS)
		return 0;
	more = realloc(s->changes, (s->nr_changes + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->changes = more;
	more[s->nr_changes++] = (struct change){.start = m->start, .end = m->end, .seq = rec->seq};
	return 0;
}

/* The latest change of what lies at addr, NULL: none was seen. */
static const struct change *last_change(const struct space *s, u64 addr)
{
	const struct change *last = NULL;
	u32 i;

	for (i = 0; i < s->nr_changes; i++)
		if (addr >= s->changes[i].start && addr < s->changes[i].end &&
		    (!last || s->changes[i].seq > last->seq))
			last = &s->changes[i];
	return last;
}

static void see_changes(struct space *s, const struct code *c)
{
	u32 i;

	for (i = 0; i < s->nr_changes; i++)
		s->changes[i].seen |= s->changes[i].seq <= c->seq &&
				      s->changes[i].start < c->ev.end &&
				      c->ev.start < s->changes[i].end;
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
	u64 what = mix(mix(mix(mix(v->start, v->end), v->pgoff), v->ino), v->name);
	struct seen *seen = look_up(k, s->id, key_of(KEY_VMA, s->id, what));
	int mapped;

	if (!seen)
		return -ENOMEM;
	if (s->walk != v->walk) {
		s->walk_before = s->walk;
		s->walk = v->walk;
	}
	mapped = seen->walk && seen->walk == s->walk_before;
	seen->walk = v->walk;
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
			see_changes(s, c);
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

static int write_unnamed(struct symbolizer *k, u64 count)
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

/* Each place once, and only where something is mapped. */
static void locate_all(struct symbolizer *k)
{
	size_t i, nr = 0;

	qsort(k->places, k->nr, sizeof(*k->places), by_place);
	for (i = 0; i < k->nr; i++) {
		struct place *at = &k->places[i];
		struct space *s = space_of(k, at->space);
		const struct change *last = s ? last_change(s, at->addr) : NULL;

		/* Other code then, or which is not known: nobody's name is given. */
		if (last && (!last->seen || at->seq < last->seq))
			continue;
		at->seq = last ? last->seq : 0; /* names hold from here on */
		if (!s || !sym_locate(s->sym, at->addr, at->is_return, &at->spot))
			continue;
		/* A pc and a return address may be the same number. */
		if (first_time(k, at->space,
			       key_of(KEY_NAMED, at->space, mix(at->addr, at->seq))) <= 0)
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
	if (!err && k->unnamed)
		err = write_unnamed(k, k->unnamed);
	return err;
}

/* Stacks of a fault may be read behind the end of their process: the run after that has them. */
static int is_over(const struct space *s)
{
	return !s || s->ended > 1;
}

/* A recording goes on while processes come and go: once half of them are over, all that is
 * remembered of those is forgotten. */
static int forget_ended(struct symbolizer *k)
{
	size_t i, n = 0, cap = k->cap_seen;
	struct seen *set;

	for (i = 0; i < k->nr_spaces; i++) {
		k->spaces[i].ended += !k->spaces[i].members;
		n += is_over(&k->spaces[i]);
	}
	if (n < 64 || n * 2 < k->nr_spaces)
		return 0;
	set = calloc(cap, sizeof(*set));
	if (!set)
		return -ENOMEM;
	k->nr_seen = 0;
	for (i = 0; i < cap; i++)
		if (k->seen[i].key && !is_over(space_of(k, k->seen[i].space))) {
			*slot_of(set, cap, k->seen[i].key) = k->seen[i];
			k->nr_seen++;
		}
	free(k->seen);
	k->seen = set;
	for (i = n = 0; i < k->nr_spaces; i++) {
		if (is_over(&k->spaces[i])) {
			free(k->spaces[i].changes);
			sym_space_free(&k->spaces[i].sym);
			continue;
		}
		k->spaces[n++] = k->spaces[i];
		slot_of(set, cap, key_of(KEY_SPACE, k->spaces[i].id, 0))->walk = (u32)n;
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
		free(k->spaces[i].changes);
		sym_space_free(&k->spaces[i].sym);
	}
	sym_files_free(&k->files);
	modules_release(&k->mods);
	free(k->spaces);
	free(k->places);
	free(k->code);
	free(k->seen);
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
