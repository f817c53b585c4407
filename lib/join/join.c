/* SPDX-License-Identifier: GPL-2.0-only
 * Reads a trace, puts its records into the one causal order and applies them. Which origin a byte
 * belongs to is decided here and in walk.c; nothing here reads the kernel's totals. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/join/replay.h"

const struct cost_column cost_columns[COST_MAX] = {
#define STOCK COST_STOCK
#define FLOW  COST_FLOW
#define MP_COST(NAME, name, header, unit, kind, additive, doc) \
	[COST_##NAME] = {#name, header, unit, doc, kind, additive},
#include "lib/join/cost.def"
#undef MP_COST
#undef STOCK
#undef FLOW
};

const char *const origin_kind_names[ORIGIN_KINDS] = {
	[ORIGIN_MMAP] = "mmap",
	[ORIGIN_BRK] = "brk",
	[ORIGIN_STACK] = "stack",
	[ORIGIN_FAULT] = "fault",
	[ORIGIN_FILE] = "file",
	[ORIGIN_SHMEM] = "shmem",
	[ORIGIN_SPECIAL] = "special",
	[ORIGIN_PREEXISTING] = "preexisting",
	[ORIGIN_UNATTRIBUTED] = "unattributed",
};

const char *const check_status_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_RESIDUAL] = "residual",
	[CHECK_DRIFT] = "drift",
	[CHECK_UNJUDGED] = "unjudged",
};

static const char *const loss_names[MP_LOSS_MAX] = {
#define MP_LOSS(NAME, num, name, doc) [num] = #name,
#include "bpf/shared/loss.def"
#undef MP_LOSS
};

static unsigned int distance(const char *a, const char *b)
{
	unsigned int row[32], i, j, n = (unsigned int)strlen(b);

	if (n > 31)
		return 99;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; *a; a++, i++) {
		unsigned int diag = row[0];

		row[0] = i;
		for (j = 1; j <= n; j++) {
			unsigned int best = diag + (*a != b[j - 1]);

			diag = row[j];
			if (diag + 1 < best)
				best = diag + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

int cost_find(const char *name, const char **ret_near)
{
	unsigned int best = 99, d;
	int i;

	for (i = 0; i < COST_MAX; i++) {
		if (!strcmp(name, cost_columns[i].name))
			return i;
		d = distance(name, cost_columns[i].name);
		if (d < best) {
			best = d;
			*ret_near = cost_columns[i].name;
		}
	}
	return -1;
}

int owner_parse(const char *text, enum owner_mode *ret_mode)
{
	static const char *const names[] = {
		[OWNER_AUTO] = "auto",
		[OWNER_ALLOC] = "alloc",
		[OWNER_FAULT] = "fault",
	};
	unsigned int i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i])) {
			*ret_mode = (enum owner_mode)i;
			return 0;
		}
	return -EINVAL;
}

void cost_add(struct cost *c, s64 exact, s64 inferred)
{
	c->exact += exact;
	c->inferred += inferred;
	c->known = 1;
}

/* ---- origins ---- */

static u64 origin_hash(enum origin_kind kind, u32 space, u64 stack, u32 name, const char *cls)
{
	u64 h = stack ^ ((u64)space << 32 | name) ^ ((u64)kind << 56);

	for (; cls && *cls; cls++)
		h = h * 31 + (unsigned char)*cls;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 32);
}

static int same_class(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static int origin_rehash(struct replay *p)
{
	u32 size = p->hash_size ? p->hash_size * 2 : 1024, i;
	u32 *hash = calloc(size, sizeof(*hash));

	if (!hash)
		return -ENOMEM;
	for (i = 1; i < p->nr_origins; i++) {
		struct origin *o = &p->origins[i];
		u64 h = origin_hash(o->kind, o->space, o->stack, o->name, o->class_name);

		while (hash[h & (size - 1)])
			h++;
		hash[h & (size - 1)] = i;
	}
	free(p->hash);
	p->hash = hash;
	p->hash_size = size;
	return 0;
}

u32 origin_get(struct replay *p, enum origin_kind kind, u32 space, u64 stack, u32 name,
	       const char *class_name)
{
	u64 h = origin_hash(kind, space, stack, name, class_name);
	struct space_state *s = space_get(p, space);
	struct origin *o;
	u32 i;

	if (p->nr_origins * 2 >= p->hash_size && origin_rehash(p))
		goto nomem;
	h = origin_hash(kind, space, stack, name, class_name);
	while ((i = p->hash[h & (p->hash_size - 1)])) {
		o = &p->origins[i];
		if (o->kind == kind && o->space == space && o->stack == stack && o->name == name &&
		    same_class(o->class_name, class_name))
			return i;
		h++;
	}
	if (p->nr_origins + 1 >= p->cap_origins) {
		u32 cap = p->cap_origins ? p->cap_origins * 2 : 256;

		o = realloc(p->origins, cap * sizeof(*o));
		if (!o)
			goto nomem;
		p->origins = o;
		p->cap_origins = cap;
		if (!p->nr_origins)
			p->nr_origins = 1;
	}
	i = p->nr_origins++;
	o = &p->origins[i];
	memset(o, 0, sizeof(*o));
	o->kind = kind;
	o->space = space;
	o->stack = stack;
	o->name = name;
	o->class_name = class_name;
	o->pid = s ? s->pid : 0;
	o->comm = s ? s->comm : NULL;
	p->hash[h & (p->hash_size - 1)] = i;
	return i;
nomem:
	p->err = -ENOMEM;
	return 0;
}

/* A forked space inherits mappings and their owners; what it holds of them is its own row. */
u32 origin_in(struct replay *p, u32 origin, u32 space)
{
	struct origin o = p->origins[origin];

	if (o.space == space)
		return origin;
	return origin_get(p, o.kind, space, o.stack, o.name, o.class_name);
}

struct space_state *space_get(struct replay *p, u32 id)
{
	u32 i;

	for (i = 0; i < p->nr_spaces; i++)
		if (p->spaces[i].id == id)
			return &p->spaces[i];
	return NULL;
}

/* ---- records ---- */

static int keep(struct replay *p, const struct mp_hdr *rec)
{
	if (p->nr_items == p->cap_items) {
		size_t cap = p->cap_items ? p->cap_items * 2 : 4096;
		struct item *items = realloc(p->items, cap * sizeof(*items));

		if (!items)
			return -ENOMEM;
		p->items = items;
		p->cap_items = cap;
	}
	if (p->arena_len + rec->size > p->arena_cap) {
		size_t cap = p->arena_cap ? p->arena_cap * 2 : 1u << 20;
		u8 *arena = realloc(p->arena, cap);

		if (!arena)
			return -ENOMEM;
		p->arena = arena;
		p->arena_cap = cap;
	}
	memcpy(p->arena + p->arena_len, rec, rec->size);
	p->items[p->nr_items].seq = rec->seq;
	p->items[p->nr_items++].at = p->arena_len;
	p->arena_len += rec->size;
	return 0;
}

/* Ties keep file order: a walk's records share the number of the event before them. */
static int by_seq(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int on_space(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_space *ev = trace_body(rec, space);
	struct space_state *s = space_get(p, rec->space);
	u32 parent = ev->cause == MP_SPACE_FORK ? ev->parent : 0, i;
	int err;

	if (ev->cause == MP_SPACE_JOIN) {
		if (s)
			s->members++;
		return 0;
	}
	if (s)
		return 0;
	s = realloc(p->spaces, (p->nr_spaces + 1) * sizeof(*s));
	if (!s)
		return -ENOMEM;
	p->spaces = s;
	s += p->nr_spaces++;
	memset(s, 0, sizeof(*s));
	s->id = rec->space;
	s->pid = ev->tgid;
	s->members = 1;
	s->comm = trace_reader_string(p->r->reader, ev->comm);
	s->attached = ev->cause == MP_SPACE_ATTACH;
	for (i = 0; i < p->nr_lost; i++)
		if (p->lost[i].space == s->id || !p->lost[i].space)
			s->lost[p->lost[i].cls] += p->lost[i].count;
	err = ledger_space_new(p->ledger, rec->space, parent);
	if (err == -ENOENT)
		err = ledger_space_new(p->ledger, rec->space, 0);
	return err;
}

static void on_leave(struct replay *p, u32 space)
{
	struct space_state *s = space_get(p, space);

	if (s && s->members && !--s->members) {
		s->ended = 1;
		ledger_space_end(p->ledger, space);
	}
}

static int map_range(struct replay *p, u32 space, u64 start, u64 end, u32 origin)
{
	int err = ledger_map(p->ledger, space, start, end, origin);

	if (!err)
		p->origins[origin].generations++;
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

static int on_map(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_map *ev = trace_body(rec, map);
	u32 origin = origin_get(p, ev->kind == MP_MAP_BRK ? ORIGIN_BRK : ORIGIN_MMAP, rec->space,
				ev->stack, 0, ev->stack ? NULL : "[no stack]");

	return origin ? map_range(p, rec->space, ev->start, ev->end, origin) : p->err;
}

static int on_remap(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_remap *ev = trace_body(rec, remap);
	u32 origin = origin_get(p, ORIGIN_MMAP, rec->space, ev->stack, 0,
				ev->stack ? NULL : "[no stack]");
	int err;

	if (!origin)
		return p->err;
	err = ledger_remap(p->ledger, rec->space, ev->old_start, ev->old_len, ev->new_start,
			   ev->new_len, !!(ev->flags & MREMAP_DONTUNMAP), origin);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

static int on_fault(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_fault *ev = trace_body(rec, fault);
	u32 fault, owner = 0, fresh = 0, fresh_block;
	s64 bytes = (s64)(MP_PAGE_SIZE << (ev->order < 20 ? ev->order : 0));
	struct origin *o;
	int err;

	fault = origin_get(p, ORIGIN_FAULT, rec->space, ev->stack, 0,
			   ev->stack ? NULL : "[no stack]");
	if (!fault)
		return p->err;
	err = ledger_fault(p->ledger, rec->space, ev->addr, 0, fault, &owner, &fresh);
	/* A huge fault backs its whole block but proves access to one page only. */
	if (!err && owner && ev->order)
		err = ledger_fault(p->ledger, rec->space, ev->addr, ev->order, fault, &owner,
				   &fresh_block);
	if (err == -ENOENT || err == -EINVAL)
		err = 0;
	if (err || !owner)
		return err;
	owner = origin_in(p, owner, rec->space);
	if (!owner)
		return p->err;
	o = &p->origins[owner];
	if (p->owner == OWNER_FAULT ||
	    (p->owner == OWNER_AUTO && o->kind != ORIGIN_MMAP && o->kind != ORIGIN_BRK &&
	     o->kind != ORIGIN_FILE && o->kind != ORIGIN_SHMEM))
		o = &p->origins[fault];
	cost_add(&o->cost[COST_FAULTS], 0, 1);
	cost_add(&o->cost[COST_STALL], 0, ev->stall);
	cost_add(&o->cost[COST_FAULTED], 0, bytes);
	cost_add(&o->cost[COST_TOUCHED], 0, (s64)(fresh * MP_PAGE_SIZE));
	cost_add(&o->cost[COST_COW], 0, ev->member == 255 ? bytes : 0);
	return 0;
}

static int on_advise(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_advise *ev = trace_body(rec, advise);
	int err;

	if (ev->advice != MADV_DONTNEED && ev->advice != MADV_REMOVE && ev->advice != MADV_FREE)
		return 0;
	err = ledger_discard(p->ledger, rec->space, ev->start, ev->end);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

static int apply(struct replay *p, const struct mp_hdr *rec, u32 final_walk)
{
	const struct mp_ev_unmap *un = trace_body(rec, unmap);
	const struct mp_ev_walk *w = trace_body(rec, walk);
	struct space_state *s;
	int err = 0;

	switch (rec->type) {
	case MP_EV_SPACE:
		return on_space(p, rec);
	case MP_EV_SPACE_END:
		on_leave(p, rec->space);
		return 0;
	case MP_EV_MAP:
		return on_map(p, rec);
	case MP_EV_UNMAP:
		err = ledger_unmap(p->ledger, rec->space, un->start, un->end);
		return err == -EINVAL || err == -ENOENT ? 0 : err;
	case MP_EV_REMAP:
		return on_remap(p, rec);
	case MP_EV_FAULT:
		return on_fault(p, rec);
	case MP_EV_ADVISE:
		return on_advise(p, rec);
	case MP_EV_WALK:
		if (!w->end) {
			p->nr_vmas = 0;
			return 0;
		}
		s = space_get(p, rec->space);
		if (s)
			s->pictures++;
		if (w->id == final_walk)
			p->r->stable = (int)w->stable;
		return 0;
	default:
		return 0;
	}
}

/* ---- whole file ---- */

static int note_loss(struct replay *p, u32 space, const struct mp_ev_loss *loss)
{
	struct space_loss *l;

	if (loss->cls >= MP_CLASS_MAX)
		return 0;
	l = realloc(p->lost, (p->nr_lost + 1) * sizeof(*l));
	if (!l)
		return -ENOMEM;
	p->lost = l;
	l += p->nr_lost++;
	l->space = space;
	l->cls = loss->cls;
	l->count = loss->count;
	return 0;
}

static int note(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_session *ses = trace_body(rec, session);
	const struct mp_ev_hook *hook = trace_body(rec, hook);
	const struct mp_ev_loss *loss = trace_body(rec, loss);
	struct report *r = p->r;

	switch (rec->type) {
	case MP_EV_END:
		r->end = (int)trace_body(rec, end)->reason;
		break;
	case MP_EV_SESSION:
		r->start_realtime = ses->start_realtime;
		r->host = trace_reader_string(r->reader, ses->host);
		r->kernel = trace_reader_string(r->reader, ses->kernel);
		r->arch = trace_reader_string(r->reader, ses->arch);
		break;
	case MP_EV_HOOK:
		if (r->nr_hooks == 32)
			break;
		r->hooks[r->nr_hooks].capability = trace_reader_string(r->reader, hook->capability);
		r->hooks[r->nr_hooks].provider = trace_reader_string(r->reader, hook->provider);
		r->hooks[r->nr_hooks].stability = trace_reader_string(r->reader, hook->stability);
		r->hooks[r->nr_hooks++].reason = trace_reader_string(r->reader, hook->reason);
		break;
	case MP_EV_LOSS:
		if (loss->cause < MP_LOSS_MAX && loss_names[loss->cause]) {
			r->losses[loss->cause].name = loss_names[loss->cause];
			r->losses[loss->cause].count += loss->count;
			r->lost += loss->count;
		}
		return note_loss(p, rec->space, loss);
	default:
		break;
	}
	return 0;
}

static int load(struct replay *p)
{
	const struct mp_hdr *rec;
	int n, err = 0;

	while (!err && (n = trace_reader_next(p->r->reader, &rec)) > 0) {
		if (rec->type == MP_EV_STRING)
			continue;
		if (rec->time_ns && (!p->first_ns || rec->time_ns < p->first_ns))
			p->first_ns = rec->time_ns;
		if (rec->time_ns > p->last_ns)
			p->last_ns = rec->time_ns;
		err = keep(p, rec);
	}
	if (err || n < 0)
		return err ? err : n;
	if (p->nr_items)
		qsort(p->items, p->nr_items, sizeof(*p->items), by_seq);
	p->r->mp_events = p->nr_items;
	p->r->truncated = trace_reader_truncated(p->r->reader);
	return 0;
}

/* The highest walk number that ended: its picture gives the stocks. */
static u32 last_walk(struct replay *p)
{
	u32 best = 0;
	size_t i;

	for (i = 0; i < p->nr_items; i++) {
		const struct mp_hdr *rec = replay_rec(p, i);
		const struct mp_ev_walk *w = trace_body(rec, walk);

		if (rec->type == MP_EV_WALK && w->end && w->id >= best) {
			best = w->id;
			p->last_walk_ns = rec->time_ns;
		}
	}
	return best;
}

static int add_race(struct replay *p, u32 space, u64 start, u64 end)
{
	struct race *r = realloc(p->races, (p->nr_races + 1) * sizeof(*r));

	if (!r)
		return -ENOMEM;
	p->races = r;
	r += p->nr_races++;
	r->space = space;
	r->start = start;
	r->end = end;
	return 0;
}

/* Mapping calls that overlap the picture which begins at item i: they may have taken effect on
 * either side of the moment a page was read. A call that entered before the end may return after
 * it. */
static int find_races(struct replay *p, size_t i)
{
	u64 begin = p->items[i].seq, end = ~0ull;
	u32 space = replay_rec(p, i)->space;
	size_t j;
	int err = 0;

	for (j = i + 1; j < p->nr_items && !err; j++) {
		const struct mp_hdr *rec = replay_rec(p, j);
		const struct mp_ev_map *m = trace_body(rec, map);
		const struct mp_ev_unmap *u = trace_body(rec, unmap);
		const struct mp_ev_remap *r = trace_body(rec, remap);

		if (rec->space != space)
			continue;
		if (rec->type == MP_EV_WALK && trace_body(rec, walk)->end && end == ~0ull)
			end = rec->seq;
		if (rec->seq <= begin)
			continue;
		if (rec->type == MP_EV_MAP && m->seq_entry <= end)
			err = add_race(p, space, m->start, m->end);
		else if (rec->type == MP_EV_UNMAP && rec->seq <= end)
			err = add_race(p, space, u->start, u->end);
		else if (rec->type == MP_EV_REMAP && r->seq_entry <= end) {
			err = add_race(p, space, r->old_start, r->old_start + r->old_len);
			if (!err)
				err = add_race(p, space, r->new_start, r->new_start + r->new_len);
		}
	}
	return err;
}

static int run(struct replay *p)
{
	u32 final = last_walk(p), current = 0;
	size_t i;
	int err = 0;

	p->r->has_walk = final != 0;
	/* Losses first: what they demote is decided while the records are applied. */
	for (i = 0; i < p->nr_items && !err; i++)
		err = note(p, replay_rec(p, i));
	for (i = 0; i < p->nr_items && !err; i++) {
		const struct mp_hdr *rec = replay_rec(p, i);
		const struct mp_ev_walk *w = trace_body(rec, walk);

		if (rec->type == MP_EV_WALK && !w->end) {
			current = w->id;
			if (current == final)
				err = find_races(p, i);
			if (err)
				break;
		}
		if (rec->type == MP_EV_VMA)
			err = walk_vma(p, rec);
		else if (rec->type == MP_EV_RUN)
			err = walk_run(p, rec, current == final);
		else if (rec->type == MP_EV_CHECK && current == final)
			walk_check(p, rec);
		else
			err = apply(p, rec, final);
		if (!err && rec->type == MP_EV_WALK && w->end)
			err = walk_finish(p, rec->space, w->id == final);
	}
	return err ? err : p->err;
}

static int targets(struct replay *p)
{
	struct report *r = p->r;
	int pass;
	u32 i;

	r->targets = calloc(p->nr_spaces ? p->nr_spaces : 1, sizeof(*r->targets));
	if (!r->targets)
		return -ENOMEM;
	/* Who is in the picture first, then who came and went. */
	for (pass = 1; pass >= 0; pass--)
		for (i = 0; i < p->nr_spaces; i++) {
			if (p->spaces[i].pictured != pass)
				continue;
			r->targets[r->nr_targets].pid = p->spaces[i].pid;
			r->targets[r->nr_targets++].comm = p->spaces[i].comm;
		}
	r->duration_ns = p->last_ns - p->first_ns;
	r->picture_age_ns = p->last_walk_ns ? p->last_ns - p->last_walk_ns : 0;
	return 0;
}

int join_trace(struct trace_reader *reader, enum owner_mode owner, struct report **ret_r)
{
	struct replay p = {.owner = owner};
	int err;

	p.r = calloc(1, sizeof(*p.r));
	if (!p.r) {
		trace_reader_close(&reader);
		return -ENOMEM;
	}
	p.r->end = -1;
	p.r->reader = reader;
	err = ledger_new(&p.ledger);
	if (!err)
		err = load(&p);
	if (!err)
		err = run(&p);
	if (!err)
		err = targets(&p);
	if (!err)
		walk_judge(&p);
	if (!err)
		err = names_attach(&p);
	ledger_free(&p.ledger);
	free(p.items);
	free(p.origins);
	free(p.hash);
	free(p.spaces);
	free(p.vmas);
	free(p.lost);
	free(p.races);
	free(p.shared_pfns);
	p.r->priv = p.arena;
	if (err)
		join_free(&p.r);
	else
		*ret_r = p.r;
	return err;
}

int join_file(const char *path, enum owner_mode owner, struct report **ret_r)
{
	struct trace_reader *reader = NULL;
	int err = trace_reader_open(path, &reader);

	return err ? err : join_trace(reader, owner, ret_r);
}

void join_free(struct report **r)
{
	size_t i;

	if (!r || !*r)
		return;
	for (i = 0; i < (*r)->nr_rows; i++)
		free((*r)->rows[i].frames);
	free((*r)->rows);
	free((*r)->targets);
	trace_reader_close(&(*r)->reader);
	free((*r)->priv);
	free(*r);
	*r = NULL;
}
