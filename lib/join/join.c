/* SPDX-License-Identifier: GPL-2.0-only
 * Applies records to the ledger, one by one in their causal order. Which origin a byte belongs to
 * is decided here and in walk.c; nothing here reads the kernel's totals. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/join/access.h"
#include "lib/join/replay.h"
#include "lib/join/memsample.h"
#include "lib/text/text.h"

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
	[ORIGIN_MALLOC] = "malloc",
	[ORIGIN_MMAP] = "mmap",
	[ORIGIN_BRK] = "brk",
	[ORIGIN_STACK] = "stack",
	[ORIGIN_FAULT] = "fault",
	[ORIGIN_FILE] = "file",
	[ORIGIN_SHMEM] = "shmem",
	[ORIGIN_MEMCG] = "memcg",
	[ORIGIN_SPECIAL] = "special",
	[ORIGIN_PREEXISTING] = "preexisting",
	[ORIGIN_UNATTRIBUTED] = "unattributed",
	[ORIGIN_PROCESS] = "process",
	[ORIGIN_NODE] = "node",
	[ORIGIN_RESOURCE] = "resource",
};

const char *const mem_class_names[CLASS_MAX] = {
	[CLASS_LIVE] = "live",
	[CLASS_FREED] = "freed",
	[CLASS_SLACK] = "slack",
	[CLASS_PREEXISTING] = "preexisting",
	[CLASS_FILE] = "file",
	[CLASS_SHMEM] = "shmem",
	[CLASS_STACK] = "stack",
	[CLASS_SPECIAL] = "special",
	[CLASS_UNATTRIBUTED] = "unattributed",
};

const char *const check_status_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_RESIDUAL] = "residual",
	[CHECK_DRIFT] = "drift",
	[CHECK_UNJUDGED] = "unjudged",
};

int cost_find(const char *name, const char **ret_near)
{
	unsigned int best = 99, d;
	int i;

	for (i = 0; i < COST_MAX; i++) {
		if (!strcmp(name, cost_columns[i].name))
			return i;
		d = text_distance(name, cost_columns[i].name);
		if (d < best) {
			best = d;
			*ret_near = cost_columns[i].name;
		}
	}
	return -1;
}

const char *const owner_names[] = {
	[OWNER_AUTO] = "auto",
	[OWNER_ALLOC] = "alloc",
	[OWNER_FAULT] = "fault",
};

int owner_parse(const char *text, enum owner_mode *ret_mode)
{
	unsigned int i;

	for (i = 0; i < sizeof(owner_names) / sizeof(owner_names[0]); i++)
		if (!strcmp(text, owner_names[i])) {
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

/* What tells origins apart. */
struct owner {
	enum origin_kind kind;
	u32 space, name, dev, resource;
	u64 stack, ino;
	const char *class_name;
};

static struct owner owner_of(const struct origin *o)
{
	return (struct owner){
		.kind = o->kind,
		.space = o->space,
		.name = o->name,
		.dev = o->dev,
		.resource = o->resource,
		.stack = o->stack,
		.ino = o->ino,
		.class_name = o->class_name,
	};
}

static u64 owner_hash(const struct owner *o)
{
	const char *cls = o->class_name;
	u64 h = o->stack ^ ((u64)o->space << 32 | o->name) ^ ((u64)o->kind << 56);

	h = (h ^ h >> 31) + o->resource * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29) + (o->ino ^ (u64)o->dev << 32);
	for (; cls && *cls; cls++)
		h = h * 31 + (unsigned char)*cls;
	h *= 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 32);
}

static int same_class(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static int is_owner(const struct origin *a, const struct owner *b)
{
	return a->kind == b->kind && a->space == b->space && a->stack == b->stack &&
	       a->name == b->name && a->ino == b->ino && a->dev == b->dev &&
	       a->resource == b->resource && same_class(a->class_name, b->class_name);
}

int origin_rehash(struct replay *p, u32 size)
{
	u32 *hash = calloc(size, sizeof(*hash)), i;

	if (!hash)
		return -ENOMEM;
	for (i = 1; i < p->nr_origins; i++) {
		struct owner key = owner_of(&p->origins[i]);
		u64 h = owner_hash(&key);

		if (p->origins[i].unused)
			continue;
		while (hash[h & (size - 1)])
			h++;
		hash[h & (size - 1)] = i;
	}
	free(p->hash);
	p->hash = hash;
	p->hash_size = size;
	return 0;
}

/* A number nobody has: 0 when memory is short. */
static u32 new_origin(struct replay *p)
{
	u32 i = p->unused_origin;

	if (i) {
		p->unused_origin = p->origins[i].next_unused;
		return i;
	}
	if (p->nr_origins + 1 >= p->cap_origins) {
		u32 cap = p->cap_origins ? p->cap_origins * 2 : 256;
		struct origin *o = realloc(p->origins, cap * sizeof(*o));

		if (!o)
			return 0;
		p->origins = o;
		p->cap_origins = cap;
		if (!p->nr_origins)
			p->nr_origins = 1;
	}
	return p->nr_origins++;
}

static u32 find_origin(struct replay *p, const struct owner *key)
{
	struct space_state *s;
	u64 h = owner_hash(key);
	u32 i = 0;

	if (p->nr_origins * 2 < p->hash_size ||
	    !origin_rehash(p, p->hash_size ? p->hash_size * 2 : 1024)) {
		for (; (i = p->hash[h & (p->hash_size - 1)]); h++)
			if (is_owner(&p->origins[i], key))
				return i;
		i = new_origin(p);
	}
	if (!i) {
		p->err = -ENOMEM;
		return 0;
	}
	s = space_get(p, key->space);
	p->origins[i] = (struct origin){
		.kind = key->kind,
		.space = key->space,
		.name = key->name,
		.dev = key->dev,
		.resource = key->resource,
		.stack = key->stack,
		.ino = key->ino,
		.class_name = key->class_name,
		.pid = s ? s->pid : 0,
		.comm = s ? s->comm : NULL,
	};
	p->hash[h & (p->hash_size - 1)] = i;
	return i;
}

u32 origin_get(struct replay *p, enum origin_kind kind, u32 space, u64 stack, u32 name,
	       const char *class_name)
{
	const struct owner key = {.kind = kind,
				  .space = space,
				  .stack = stack,
				  .name = name,
				  .class_name = class_name};

	return find_origin(p, &key);
}

u32 origin_of_object(struct replay *p, enum origin_kind kind, u32 space, const struct mp_ev_vma *v)
{
	const struct owner key = {
		.kind = kind, .space = space, .name = v->name, .ino = v->ino, .dev = v->dev};

	return find_origin(p, &key);
}

/* A row of its own, of the same owner by this key. */
static u32 origin_like(struct replay *p, u32 origin, const struct owner *key)
{
	u32 there = find_origin(p, key);

	p->origins[there].heap |= p->origins[origin].heap;
	if (p->origins[there].mapped < p->origins[origin].mapped)
		p->origins[there].mapped = p->origins[origin].mapped;
	return there;
}

u32 origin_named(struct replay *p, u32 origin, u32 resource)
{
	struct owner key = owner_of(&p->origins[origin]);
	u32 there;

	key.resource = resource;
	there = origin_like(p, origin, &key);
	p->origins[there].base = there ? origin : 0;
	return there;
}

/* A forked space inherits mappings and their owners; what it holds of them is its own row. */
u32 origin_in(struct replay *p, u32 origin, u32 space)
{
	struct owner key;

	if (p->origins[origin].space == space)
		return origin;
	key = owner_of(&p->origins[origin]);
	key.space = space;
	return origin_like(p, origin, &key);
}

/* Place of a space's number in the index, or of the hole where it would be. */
static u32 *space_slot(const struct replay *p, u32 id)
{
	u32 mask = p->space_index_size - 1, h = id * 0x9e3779b1u >> 7;

	while (p->space_index[h & mask] && p->spaces[p->space_index[h & mask] - 1].id != id)
		h++;
	return &p->space_index[h & mask];
}

struct space_state *space_get(struct replay *p, u32 id)
{
	u32 n = p->nr_spaces ? *space_slot(p, id) : 0;

	return n ? &p->spaces[n - 1] : NULL;
}

void space_reindex(struct replay *p)
{
	u32 i;

	memset(p->space_index, 0, p->space_index_size * sizeof(*p->space_index));
	for (i = 0; i < p->nr_spaces; i++)
		*space_slot(p, p->spaces[i].id) = i + 1;
}

static int space_index_grow(struct replay *p)
{
	u32 size = p->space_index_size ? p->space_index_size * 2 : 64;
	u32 *index = calloc(size, sizeof(*index));

	if (!index)
		return -ENOMEM;
	free(p->space_index);
	p->space_index = index;
	p->space_index_size = size;
	space_reindex(p);
	return 0;
}

/* ---- records ---- */

static int on_space(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_space *ev = trace_body(rec, space);
	struct space_state *s = space_get(p, rec->space);
	u32 parent = ev->cause == MP_SPACE_FORK ? ev->parent : 0;
	int err;

	if (ev->cause == MP_SPACE_JOIN) {
		if (s)
			s->members++;
		return 0;
	}
	if (s)
		return 0;
	if ((p->nr_spaces + 1) * 2 > p->space_index_size && space_index_grow(p))
		return -ENOMEM;
	s = realloc(p->spaces, (p->nr_spaces + 1) * sizeof(*s));
	if (!s)
		return -ENOMEM;
	p->spaces = s;
	*space_slot(p, rec->space) = p->nr_spaces + 1;
	s += p->nr_spaces++;
	memset(s, 0, sizeof(*s));
	s->id = rec->space;
	s->pid = ev->tgid;
	s->members = 1;
	s->parent = parent;
	s->comm = replay_text(p, ev->comm);
	s->attached = ev->cause == MP_SPACE_ATTACH;
	s->born_ns = rec->time_ns;
	losses_before(p, s);
	err = ledger_space_new(p->ledger, rec->space, parent);
	if (err == -ENOENT)
		err = ledger_space_new(p->ledger, rec->space, 0);
	if (!err)
		after_fork(p, s);
	return err || !parent ? err : inherit(p, rec);
}

/* A picture shows a space whose birth was lost: whose it is is not known. */
static int space_unborn(struct replay *p, u32 id)
{
	const struct {
		struct mp_hdr hdr;
		struct mp_ev_space ev;
	} birth = {.hdr = {.type = MP_EV_SPACE, .space = id}, .ev = {.cause = MP_SPACE_FORK}};
	int err;

	if (space_get(p, id))
		return 0;
	err = on_space(p, &birth.hdr);
	if (!err)
		space_get(p, id)->lost[MP_CLASS_SPACE] = 1;
	return err;
}

static void on_leave(struct replay *p, u32 space, const struct mp_ev_space_end *ev)
{
	struct space_state *s = space_get(p, space);

	if (s && ev->tgid == s->pid)
		s->status = ev->status;
	/* When a member may have come unseen, the space lives as long as pictures show it. */
	if (s && !s->lost[MP_CLASS_SPACE] && s->members && !--s->members) {
		s->ended = 1;
		unmap_is_done(p, space, 0, ~0ull);
		doubts_end(p, space, 0, ~0ull);
		huge_forget(p, space, 0, ~0ull);
		ledger_space_end(p->ledger, space);
	}
}

static int map_range(struct replay *p, u32 space, u64 start, u64 end, u32 origin)
{
	int err;

	access_drop(p, space, start, end, 1);
	err = ledger_map(p->ledger, space, start, end, origin);
	unmap_is_done(p, space, start, end);
	doubts_end(p, space, start, end);
	huge_forget(p, space, start, end);
	if (!err) {
		p->origins[origin].stirred |= access_watches(p, space);
		p->origins[origin].generations++;
		p->origins[origin].mapped += end - start;
	}
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

u32 map_origin(struct replay *p, const struct mp_hdr *map)
{
	const struct mp_ev_map *ev = trace_body(map, map);

	return origin_get(p, ev->kind == MP_MAP_BRK ? ORIGIN_BRK : ORIGIN_MMAP, map->space,
			  ev->stack, 0, ev->stack ? NULL : "[no stack]");
}

static int on_map(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_map *ev = trace_body(rec, map);
	u32 origin = map_origin(p, rec);

	if (!origin)
		return p->err;
	p->origins[origin].heap |= ev->inside == MP_INSIDE_ALLOC;
	p->origins[origin].grows |= ev->kind == MP_MAP_MMAP && ev->flags & MAP_GROWSDOWN;
	return map_range(p, rec->space, ev->start, ev->end, origin);
}

/* Several VMAs moved by one call (Linux 6.17): where the source has a hole nothing moves, and what
 * lies at that place stays. Before that a hole was an error. */
static int move_pieces(struct replay *p, u32 space, const struct mp_ev_remap *ev, u32 origin)
{
	u64 at = ev->old_start, end = ev->old_start + ev->old_len, from, to;
	int stay = !!(ev->flags & MREMAP_DONTUNMAP), err = 0;
	struct ledger_interval iv;

	while (!err && at < end && ledger_next(p->ledger, space, at, &iv) && iv.start < end) {
		from = iv.start > at ? iv.start : at;
		to = iv.end < end ? iv.end : end;
		err = ledger_remap(p->ledger, space, from, to - from,
				   ev->new_start + (from - ev->old_start), to - from, stay, origin);
		at = to;
	}
	return err;
}

static int has_hole(struct replay *p, u32 space, u64 start, u64 end)
{
	struct ledger_interval iv;

	while (start < end && ledger_next(p->ledger, space, start, &iv) && iv.start <= start)
		start = iv.end;
	return start < end && ledger_next(p->ledger, space, start, &iv) && iv.start < end;
}

static int on_remap(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_remap *ev = trace_body(rec, remap);
	u32 origin = origin_get(p, ORIGIN_MMAP, rec->space, ev->stack, 0,
				ev->stack ? NULL : "[no stack]");
	int err;

	if (!origin)
		return p->err;
	access_drop(p, rec->space, ev->old_start, ev->old_start + ev->old_len, 1);
	access_drop(p, rec->space, ev->new_start, ev->new_start + ev->new_len, 1);
	unmap_is_done(p, rec->space, ev->new_start, ev->new_start + ev->new_len);
	after_owner(p, origin, rec);
	if (ev->new_len > ev->old_len)
		p->origins[origin].mapped += ev->new_len - ev->old_len;
	if (ev->new_len < ev->old_len)
		huge_forget(p, rec->space, ev->old_start + ev->new_len,
			    ev->old_start + ev->old_len);
	err = huge_move(p, rec->space, ev->old_start, ev->old_len, ev->new_start);
	if (err)
		return err;
	if (ev->old_len == ev->new_len && ev->old_start != ev->new_start &&
	    has_hole(p, rec->space, ev->old_start, ev->old_start + ev->old_len))
		err = move_pieces(p, rec->space, ev, origin);
	else
		err = ledger_remap(p->ledger, rec->space, ev->old_start, ev->old_len, ev->new_start,
				   ev->new_len, !!(ev->flags & MREMAP_DONTUNMAP), origin);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

int in_window(const struct replay *p, u64 time_ns)
{
	return time_ns >= p->window_begin && (!p->window_end || time_ns <= p->window_end);
}

/* Are the costs of a fault the mapping's, or the faulting stack's? */
int faults_are_of_mapping(const struct replay *p, enum origin_kind mapping)
{
	return p->owner == OWNER_ALLOC ||
	       (p->owner == OWNER_AUTO &&
		(mapping == ORIGIN_MALLOC || mapping == ORIGIN_MMAP || mapping == ORIGIN_BRK ||
		 mapping == ORIGIN_FILE || mapping == ORIGIN_SHMEM));
}

/* A mapping that grows down does so at the fault, without a call, to the page of the fault. */
static int grow_down(struct replay *p, u32 space, u64 addr)
{
	struct ledger_interval iv;

	addr &= ~(MP_PAGE_SIZE - 1);
	if (!ledger_next(p->ledger, space, addr, &iv) || iv.start <= addr ||
	    !p->origins[iv.origin].grows)
		return -ENOENT;
	return ledger_map(p->ledger, space, addr, iv.start, iv.origin);
}

void charge_fault(struct replay *p, u32 origin, const struct fault_cost *f)
{
	u64 end = ~0ull;
	struct cost *c;

	origin = resource_row(p, origin, f->space, f->addr, &end);
	c = p->origins[origin].cost;
	cost_add(&c[COST_FAULTS], 0, 1);
	cost_add(&c[COST_STALL], 0, (s64)f->stall);
	cost_add(&c[COST_FAULTED], 0, f->bytes);
	cost_add(&c[COST_TOUCHED], 0, f->touched);
	cost_add(&c[COST_COW], 0, f->copied);
	if (after_is_late(p, f->space, f->seq))
		p->origins[origin].since += (u64)f->bytes;
}

#define HUGE_ORDER  9
#define MEMBER_ANON 1

int join_fault(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_fault *ev = trace_body(rec, fault);
	u32 fault, owner = 0, fresh = 0, fresh_block;
	s64 bytes = (s64)(MP_PAGE_SIZE << (ev->order < 20 ? ev->order : 0));
	struct fault_cost cost;
	struct space_state *s;
	int err;

	fault = origin_get(p, ORIGIN_FAULT, rec->space, ev->stack, 0,
			   ev->stack ? NULL : "[no stack]");
	if (!fault)
		return p->err;
	after_note(p, rec);
	after_owner(p, fault, rec);
	err = alloc_fault(p, rec);
	if (!err)
		err = ledger_fault(p->ledger, rec->space, ev->addr, 0, fault, &owner, &fresh);
	if (!err && !owner && !grow_down(p, rec->space, ev->addr))
		err = ledger_fault(p->ledger, rec->space, ev->addr, 0, fault, &owner, &fresh);
	if (!err && owner && ev->order == HUGE_ORDER && ev->member == MEMBER_ANON)
		err = huge_add(p, rec->space, ev->addr);
	/* A huge fault backs its whole block but proves access to one page only. */
	if (!err && owner && ev->order)
		err = ledger_fault(p->ledger, rec->space, ev->addr, ev->order, fault, &owner,
				   &fresh_block);
	if (err == -ENOENT || err == -EINVAL)
		err = 0;
	if (!err && !owner && (s = space_get(p, rec->space)))
		s->unplaced++;
	if (err || !owner || !in_window(p, rec->time_ns))
		return err;
	owner = origin_in(p, owner, rec->space);
	if (!owner)
		return p->err;
	if (p->r->access.clears) {
		err = access_fault(p, rec->space, ev->addr);
		if (err < 0)
			return err; /* no memory */
		fresh = (u32)err;
	}
	cost = (struct fault_cost){
		.space = rec->space,
		.tid = ev->tid,
		.fault = fault,
		.mapping = owner,
		.addr = ev->addr,
		.seq = rec->seq,
		.stall = ev->stall,
		.bytes = bytes,
		.touched = (s64)(fresh * MP_PAGE_SIZE),
		.copied = ev->member == 255 ? bytes : 0,
	};
	if (ev->flags & MP_FAULT_ALLOC)
		return alloc_hold(p, &cost);
	charge_fault(p, alloc_fault_owner(p, &cost), &cost);
	return p->err;
}

static int on_advise(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_advise *ev = trace_body(rec, advise);
	int err;

	/* Advice gives pages back, brings others in, or takes the bit away. */
	access_drop(p, rec->space, ev->start, ev->end, 0);
	/* MADV_FREE leaves the pages until memory is short; who needs one after that faults again.
	 */
	if (ev->advice != MADV_DONTNEED && ev->advice != MADV_REMOVE)
		return 0;
	huge_forget(p, rec->space, ev->start, ev->end);
	err = ledger_discard(p->ledger, rec->space, ev->start, ev->end);
	/* MADV_FREE leaves the pages until there is need. */
	if (!err)
		err = ev->advice == MADV_FREE
			      ? ledger_doubt_freed(p->ledger, rec->space, ev->start, ev->end)
			      : ledger_forget_freed(p->ledger, rec->space, ev->start, ev->end);
	return err == -EINVAL || err == -ENOENT ? 0 : err;
}

int join_apply(struct replay *p, const struct mp_hdr *rec, u32 final_walk)
{
	const struct mp_ev_unmap *un = trace_body(rec, unmap);
	const struct mp_ev_walk *w = trace_body(rec, walk);
	struct space_state *s;
	int err = 0;

	if (rec->type != MP_EV_FAULT)
		after_note(p, rec);
	switch (rec->type) {
	case MP_EV_SPACE:
		return on_space(p, rec);
	case MP_EV_SPACE_END:
		on_leave(p, rec->space, trace_body(rec, space_end));
		return 0;
	case MP_EV_MAP:
		return on_map(p, rec);
	case MP_EV_UNMAP:
		err = unmap_begins(p, rec);
		access_drop(p, rec->space, un->start, un->end, 1);
		huge_forget(p, rec->space, un->start, un->end);
		if (!err)
			err = ledger_unmap(p->ledger, rec->space, un->start, un->end);
		return err == -EINVAL || err == -ENOENT ? 0 : err;
	case MP_EV_UNMAP_END:
		return unmap_ends(p, rec);
	case MP_EV_REMAP:
		return on_remap(p, rec);
	case MP_EV_MEMSAMPLE:
		return memsample_apply(p, rec);
	case MP_EV_CLEAR:
		return access_clear(p, rec);
	case MP_EV_FAULT:
		return join_fault(p, rec);
	case MP_EV_ADVISE:
		return on_advise(p, rec);
	case MP_EV_EDGE:
	case MP_EV_RECLAIM:
		return life_apply(p, rec);
	case MP_EV_ALLOC:
	case MP_EV_FREE:
	case MP_EV_REALLOC:
	case MP_EV_SAMPLE:
		return alloc_apply(p, rec);
	case MP_EV_RESOURCE:
	case MP_EV_RESOURCE_END:
	case MP_EV_RESOURCE_USE:
		return resource_apply(p, rec);
	case MP_EV_WALK:
		if (!w->end) {
			p->nr_vmas = p->walked = 0;
			return space_unborn(p, rec->space);
		}
		s = space_get(p, rec->space);
		if (s)
			s->pictures++;
		if (w->id == final_walk) {
			p->unstable |= !w->stable;
			p->r->stable = !p->unstable;
		}
		return 0;
	default:
		return 0;
	}
}
