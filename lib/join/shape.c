/* SPDX-License-Identifier: GPL-2.0-only
 * What a mapping from before the recording is likely to be, by its own geometry and flags, what
 * lies around it and which libraries the process has. An inference, never more. A rule wants marks
 * that another mapping has by accident only; what several rules could mean, or none, stays
 * anonymous memory: the kernel merges neighbours, and a merged mapping is nobody's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/shape.h"

#define KiB(n) ((u64)(n) << 10)
#define MiB(n) ((u64)(n) << 20)
#define GiB(n) ((u64)(n) << 30)
#define TiB(n) ((u64)(n) << 40)

#define ACCESS (MP_VMA_READ | MP_VMA_WRITE | MP_VMA_EXEC)
#define ODD \
	(MP_VMA_SHARED | MP_VMA_HUGETLB | MP_VMA_SHMEM | MP_VMA_PFNMAP | MP_VMA_STACK | MP_VMA_GATE)

enum runtime {
	RT_LIBC = 1,
	RT_JEMALLOC = 2,
	RT_TCMALLOC = 4,
	RT_MIMALLOC = 8,
	RT_JVM = 16,
	RT_PYTHON = 32, /* 3.10 and later: arenas of 1 MiB */
	RT_PYTHON_OLD = 64, /* arenas of 256 KiB */
	RT_MALLOCS = RT_JEMALLOC | RT_TCMALLOC | RT_MIMALLOC,
};

struct shape;
struct view {
	const struct mp_ev_vma *v;
	const struct mp_ev_vma *below, *above; /* without a gap, else NULL */
	const struct shape *below_is;
	int heap; /* the kernel calls it [heap] */
	u32 runtimes;
};

struct shape {
	const char *name;
	int (*is)(const struct view *w);
	const char *evidence;
	int tail; /* what lies behind it without access is its own */
};

struct seen {
	struct mp_ev_vma v;
	const struct shape *is;
};

struct shapes {
	struct seen *seen;
	size_t nr, cap, begin;
	int gathered;
	u32 runtimes;
};

/* ---- words of the rules ---- */

static int anon(const struct mp_ev_vma *v)
{
	return v && !v->name && !v->ino && !(v->flags & ODD);
}

static int has(const struct mp_ev_vma *v, u32 access)
{
	return (v->flags & ACCESS) == access;
}

static int rw(const struct mp_ev_vma *v)
{
	return anon(v) && has(v, MP_VMA_READ | MP_VMA_WRITE);
}

static int plain(const struct mp_ev_vma *v)
{
	return rw(v) && !(v->flags & (MP_VMA_NORESERVE | MP_VMA_NOHUGE));
}

static int unreserved(const struct mp_ev_vma *v)
{
	return rw(v) && v->flags & MP_VMA_NORESERVE;
}

static int closed(const struct mp_ev_vma *v)
{
	return anon(v) && has(v, 0);
}

static u64 len(const struct mp_ev_vma *v)
{
	return v->end - v->start;
}

static int aligned(u64 at, u64 to)
{
	return !(at & (to - 1));
}

/* ---- the rules ---- */

static int is_bss(const struct view *w)
{
	const struct mp_ev_vma *b = w->below;

	/* Behind a library a later mapping may have filled the hole; the program is alone. */
	if (w->v->start >= TiB(96) && len(w->v) > MiB(4))
		return 0;
	return plain(w->v) && b && b->ino && b->flags & MP_VMA_WRITE && !(b->flags & ODD);
}

static int is_thread_stack(const struct view *w)
{
	return rw(w->v) && closed(w->below) && len(w->below) <= KiB(64) &&
	       !(w->v->flags & MP_VMA_NORESERVE) && len(w->v) >= KiB(16) && len(w->v) <= MiB(64) &&
	       (w->v->flags & MP_VMA_NOHUGE || len(w->v) == MiB(8));
}

static int is_mimalloc(const struct view *w)
{
	return w->runtimes & RT_MIMALLOC && unreserved(w->v) && w->v->start >= TiB(2) &&
	       w->v->start < TiB(32);
}

static int is_glibc_arena(const struct view *w)
{
	u64 end = (w->v->end + MiB(64) - 1) & ~(MiB(64) - 1);

	if (!(w->runtimes & RT_LIBC) || w->runtimes & RT_MALLOCS || !unreserved(w->v) ||
	    !aligned(w->v->start, MiB(64)) || end - w->v->start > MiB(64))
		return 0;
	if (end == w->v->end)
		return 1;
	return closed(w->above) && w->above->flags & MP_VMA_NORESERVE && w->above->end == end;
}

static int is_glibc_heap(const struct view *w)
{
	return w->heap && w->runtimes & RT_LIBC && !(w->runtimes & RT_MALLOCS);
}

static int is_tcmalloc(const struct view *w)
{
	return w->heap && w->runtimes & RT_TCMALLOC && len(w->v) >= MiB(1) &&
	       len(w->v) % MiB(1) <= KiB(8);
}

static int is_jemalloc(const struct view *w)
{
	return w->runtimes & RT_JEMALLOC && unreserved(w->v) && len(w->v) >= MiB(2) &&
	       !(len(w->v) % KiB(512)) && aligned(w->v->start, KiB(512));
}

static int is_go(const struct view *w)
{
	const u64 base = 0xc000000000;

	if (!plain(w->v) || !aligned(w->v->start, MiB(4)) || !aligned(w->v->end, MiB(4)))
		return 0;
	return w->v->start == base ||
	       (w->below_is && w->below_is->is == is_go && w->v->start < base + GiB(64));
}

static int is_jvm_heap(const struct view *w)
{
	return w->runtimes & RT_JVM && plain(w->v) && w->v->end <= GiB(32) &&
	       aligned(w->v->start, MiB(1)) && aligned(w->v->end, MiB(1));
}

static int is_jvm_code(const struct view *w)
{
	return w->runtimes & RT_JVM && anon(w->v) && has(w->v, ACCESS);
}

static int is_jvm_meta(const struct view *w)
{
	int inside = w->below_is && w->below_is->is == is_jvm_meta && closed(w->below);

	return w->runtimes & RT_JVM && plain(w->v) && closed(w->above) &&
	       w->above->flags & MP_VMA_NORESERVE && (inside || aligned(w->v->start, MiB(4)));
}

static int is_cpython(const struct view *w)
{
	u64 unit = w->runtimes & RT_PYTHON ? MiB(1) : KiB(256);

	return w->runtimes & (RT_PYTHON | RT_PYTHON_OLD) && plain(w->v) && !(len(w->v) % unit);
}

static int is_closed(const struct view *w)
{
	return closed(w->v);
}

static int is_anonymous(const struct view *w)
{
	return !w->heap;
}

/* clang-format off */
/* The first that fits. */
static const struct shape shapes[] = {
	{"bss (by shape)", is_bss,
	 "anonymous and right behind the writable part of a mapped program or library", 0},
	{"thread stack (by shape)", is_thread_stack,
	 "a guard without access below; marked as a stack (no huge pages) or 8 MiB long", 0},
	{"mimalloc (by shape)", is_mimalloc,
	 "libmimalloc is mapped; unreserved, between 2 and 32 TiB, where it asks for addresses", 1},
	{"glibc arena (by shape)", is_glibc_arena,
	 "libc is mapped and no other allocator; unreserved from a multiple of 64 MiB, the rest of it without access", 1},
	{"glibc main heap (by shape)", is_glibc_heap,
	 "the kernel's [heap] in a process with libc and no other allocator", 0},
	{"tcmalloc heap (by shape)", is_tcmalloc,
	 "libtcmalloc is mapped; the kernel's [heap], grown in steps of 1 MiB", 0},
	{"jemalloc (by shape)", is_jemalloc,
	 "libjemalloc is mapped; unreserved, 2 MiB or more in steps of 512 KiB", 1},
	{"Go arena (by address)", is_go,
	 "from address 0xc000000000 in steps of 4 MiB, where Go's heap begins", 1},
	{"JVM heap (by shape)", is_jvm_heap,
	 "libjvm is mapped; below 32 GiB in steps of 1 MiB, where compressed pointers reach", 1},
	{"JVM code cache (by shape)", is_jvm_code,
	 "libjvm is mapped; anonymous, writable and executable", 1},
	{"JVM metaspace (by shape)", is_jvm_meta,
	 "libjvm is mapped; the used start of an unreserved block at a multiple of 4 MiB, or a part inside it", 1},
	{"CPython arenas (by shape)", is_cpython,
	 "python is mapped; a whole number of its arenas (1 MiB, before 3.10 256 KiB)", 0},
	{"reserved without access", is_closed,
	 "nothing may be read or written there; no shape tells whose it is", 0},
	{"anonymous memory", is_anonymous,
	 "there before its mapping call could be seen; no shape tells whose it is", 0},
};
/* clang-format on */

/* ---- the picture ---- */

static u32 runtime_of(const char *path)
{
	static const struct {
		const char *prefix;
		u32 runtime;
	} libraries[] = {
		{"libc.so.6", RT_LIBC},		{"libc-2.", RT_LIBC},
		{"libjemalloc", RT_JEMALLOC},	{"libtcmalloc", RT_TCMALLOC},
		{"libmimalloc", RT_MIMALLOC},	{"libjvm.so", RT_JVM},
		{"libpython3.", RT_PYTHON_OLD}, {"python3.", RT_PYTHON_OLD},
	};
	const char *file = strrchr(path, '/'), *minor;
	u32 i;

	for (i = 0; file && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		if (strncmp(file + 1, libraries[i].prefix, strlen(libraries[i].prefix)))
			continue;
		minor = file + 1 + strlen(libraries[i].prefix);
		if (libraries[i].runtime == RT_PYTHON_OLD && strtoul(minor, NULL, 10) >= 10)
			return RT_PYTHON;
		return libraries[i].runtime;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->v.start < y->v.start ? -1 : x->v.start > y->v.start;
}

static int add(struct shapes *s, const struct mp_ev_vma *v)
{
	if (s->nr == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 256;
		struct seen *seen = realloc(s->seen, cap * sizeof(*seen));

		if (!seen)
			return -ENOMEM;
		s->seen = seen;
		s->cap = cap;
	}
	s->seen[s->nr].is = NULL;
	s->seen[s->nr++].v = *v;
	return 0;
}

static void classify(struct replay *p, struct shapes *s, size_t i)
{
	const struct seen *below = i ? &s->seen[i - 1] : NULL;
	struct view w = {.v = &s->seen[i].v, .runtimes = s->runtimes};
	const char *name = replay_text(p, w.v->name);
	size_t k;

	if (below && below->v.end == w.v->start) {
		w.below = &below->v;
		w.below_is = below->is;
	}
	if (i + 1 < s->nr && s->seen[i + 1].v.start == w.v->end)
		w.above = &s->seen[i + 1].v;
	w.heap = name && !strcmp(name, "[heap]");
	if (closed(w.v) && w.below_is && w.below_is->tail) {
		s->seen[i].is = w.below_is;
		return;
	}
	for (k = 0; k < sizeof(shapes) / sizeof(shapes[0]) && (anon(w.v) || w.heap); k++)
		if (shapes[k].is(&w)) {
			s->seen[i].is = &shapes[k];
			return;
		}
}

/* All VMAs of the walk at hand, also those yet to come: a neighbour or a library may lie above. */
static int gather(struct replay *p, struct shapes *s, u32 space)
{
	const struct mp_ev_vma *v;
	const struct mp_hdr *rec;
	const char *name;
	size_t i;
	int err = 0;

	s->nr = s->runtimes = 0;
	s->gathered = 1;
	for (i = s->begin; i < p->pending.nr && !err; i++) {
		rec = replay_rec(p, i);
		if (rec->type == MP_EV_WALK && i > s->begin)
			break;
		v = trace_body(rec, vma);
		if (rec->type != MP_EV_VMA || rec->space != space || v->end <= v->start)
			continue;
		name = replay_text(p, v->name);
		if (name && v->flags & MP_VMA_EXEC)
			s->runtimes |= runtime_of(name);
		err = add(s, v);
	}
	if (s->nr)
		qsort(s->seen, s->nr, sizeof(*s->seen), by_start);
	for (i = 0; i < s->nr; i++)
		classify(p, s, i);
	return err;
}

int shape_walk(struct replay *p, size_t begin)
{
	if (!p->shapes)
		p->shapes = calloc(1, sizeof(*p->shapes));
	if (!p->shapes)
		return -ENOMEM;
	p->shapes->begin = begin;
	p->shapes->gathered = 0;
	return 0;
}

void shape_forget(struct replay *p)
{
	if (p->shapes) {
		p->shapes->nr = 0;
		p->shapes->gathered = 1;
	}
}

const char *shape_of(struct replay *p, u32 space, const struct mp_ev_vma *v)
{
	struct seen key = {.v = *v};
	const struct seen *seen = NULL;

	if (p->shapes && !p->shapes->gathered && gather(p, p->shapes, space))
		p->err = -ENOMEM;
	if (p->shapes && p->shapes->nr)
		seen = bsearch(&key, p->shapes->seen, p->shapes->nr, sizeof(key), by_start);
	return seen && seen->is ? seen->is->name : NULL;
}

int shape_is_bss(const char *name)
{
	return !strcmp(name, "bss (by shape)");
}

const char *shape_evidence(const char *name)
{
	size_t i;

	for (i = 0; name && i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (!strcmp(name, shapes[i].name))
			return shapes[i].evidence;
	return NULL;
}

void shape_free(struct replay *p)
{
	if (p->shapes)
		free(p->shapes->seen);
	free(p->shapes);
	p->shapes = NULL;
}
