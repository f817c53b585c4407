/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to lib/join: which pages were accessed, by their accessed bits. A page is watched from a
 * CLEAR on when the picture before showed it, and as long as no event says that another page may be
 * in its place. A page that came into being meanwhile has its bit from that, and is touched only if
 * a fault names it. */
#ifndef MP_JOIN_ACCESS_H
#define MP_JOIN_ACCESS_H

#include "lib/join/replay.h"

struct access_space;

/* Bytes of a run with one owner, as charge.c has them. */
struct access_lot {
	u32 space, owner;
	enum cost_part part;
	u64 birth; /* of the allocation they are in, 0 none, ~0 it has ended */
	int final;
};

/* CLEAR and ACCESSED, before anything is applied; then final, the walk that gives the stocks. */
int access_note(struct replay *p, const struct mp_hdr *rec);
void access_begin(struct replay *p, u32 final);
/* Is anything of this space watched; and has a picture told what of it was touched? */
int access_watches(struct replay *p, u32 space);
int access_known(struct replay *p, u32 space);

/* A picture begins; shows pages, before they are charged; has ended. */
void access_walk(struct replay *p, u32 space, u32 walk);
int access_run(struct replay *p, u32 space, const struct mp_ev_run *run);
void access_walk_end(struct replay *p, u32 space, u32 walk);
int access_clear(struct replay *p, const struct mp_hdr *rec);
/* Bytes [from, to) of the run that was just shown. */
void access_charge(struct replay *p, const struct access_lot *lot, u64 from, u64 to);

/* Before the ledger hears of it: other pages may be in [start, end) now; forget: another mapping,
 * whose pages nobody has touched yet. */
void access_drop(struct replay *p, u32 space, u64 start, u64 end, int forget);
/* A fault names the page: 1 for the first touch of it, 0, or -ENOMEM. */
int access_fault(struct replay *p, u32 space, u64 addr);

/* Of a row's costs, and of the totals: what is open, and the bounds. */
void access_costs(struct replay *p, const struct origin *o, struct cost *costs);
void access_bound(struct replay *p, const struct origin *o, struct cost *costs);
void access_totals(struct replay *p, struct report *r);
void access_free(struct access_space *a);

#endif
