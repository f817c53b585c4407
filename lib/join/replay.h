/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to lib/join: the state of one replay, shared by its three files. */
#ifndef MP_JOIN_REPLAY_H
#define MP_JOIN_REPLAY_H

#include "lib/join/join.h"
#include "lib/ledger/ledger.h"

struct origin {
	enum origin_kind kind;
	u32 space, pid, name; /* string id; for classes see class_name */
	const char *class_name;
	const char *comm;
	u64 stack;
	u32 generations;
	struct cost cost[COST_MAX];
	u64 resident_start;
};

struct space_state {
	u32 id, pid, members, pictures;
	const char *comm;
	int attached, ended, pictured; /* pictured: in the final picture */
	u64 lost[MP_CLASS_MAX];
};

struct space_loss {
	u32 space, cls;
	u64 count;
};

/* A range whose mapping changed while the final picture was taken: its owner there is inferred. */
struct race {
	u32 space;
	u64 start, end;
};

struct vma_seen {
	struct mp_ev_vma ev;
	u32 space, walk;
};

/* Records in order, and what stacks and symbols they name. */
struct replay {
	struct report *r;
	struct ledger *ledger;
	enum owner_mode owner;
	u8 *arena;
	size_t arena_len, arena_cap;
	struct item {
		u64 seq;
		size_t at;
	} * items;
	size_t nr_items, cap_items;
	struct origin *origins; /* index is the ledger's origin number; 0 unused */
	u32 nr_origins, cap_origins;
	u32 *hash; /* open addressing over origins */
	u32 hash_size;
	struct space_state *spaces;
	u32 nr_spaces, nr_pictured;
	struct vma_seen *vmas; /* of the walk being read */
	size_t nr_vmas, cap_vmas;
	struct space_loss *lost;
	u32 nr_lost;
	struct race *races;
	u32 nr_races;
	u64 *shared_pfns; /* ids of the final picture's shared pages: unique counts each once */
	size_t nr_pfns, cap_pfns;
	u64 first_ns, last_ns, last_walk_ns;
	int err;
};

static inline const struct mp_hdr *replay_rec(const struct replay *p, size_t i)
{
	return (const struct mp_hdr *)(p->arena + p->items[i].at);
}

/* Number of the origin with this key, made on first use. 0: -ENOMEM in p->err. */
u32 origin_get(struct replay *p, enum origin_kind kind, u32 space, u64 stack, u32 name,
	       const char *class_name);
/* The row of the same owner in another space. 0: -ENOMEM in p->err. */
u32 origin_in(struct replay *p, u32 origin, u32 space);
struct space_state *space_get(struct replay *p, u32 id);
void cost_add(struct cost *c, s64 exact, s64 inferred);

/* walk.c: a walk's VMAs and runs against the ledger. final: this picture gives the stocks. */
int walk_vma(struct replay *p, const struct mp_hdr *rec);
int walk_run(struct replay *p, const struct mp_hdr *rec, int final);
int walk_finish(struct replay *p, u32 space, int final);
void walk_check(struct replay *p, const struct mp_hdr *rec);
/* Totals and checks, after the last record. */
void walk_judge(struct replay *p);
/* names.c: frames of every row. */
int names_attach(struct replay *p);

#endif
