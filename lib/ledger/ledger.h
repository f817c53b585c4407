/* SPDX-License-Identifier: GPL-2.0-only
 * The ledger: who owned which addresses when. Pure - no files, no clocks, no printing.
 *
 * Invariants (asserted under the same numbers in tests/unit/ledger.c):
 *  1. Live intervals of a space never overlap and are never empty.
 *  2. An interval generation is never edited: an event ends it and starts others with its origin.
 *  3. A fork costs O(1) and shares everything until one side changes (persistent trees).
 *  4. A page generation belongs to exactly one interval generation and ends no later than it.
 *  5. mapped bytes = bytes ever mapped - bytes unmapped, in every space at every moment.
 *  6. Live allocations of a family never overlap; bytes of a freed one are its own until another is
 *     freed there, its page is given back, or the page is backed anew.
 *  7. Named ranges never overlap and are never empty; a name ends with the mapping under it.
 */
#ifndef MP_LEDGER_LEDGER_H
#define MP_LEDGER_LEDGER_H

#include "bpf/shared/event.h"

struct ledger;

/* Allocations of one family lie inside those of the family below: a pool in blocks of malloc. */
#define LEDGER_FAMILIES 2u

/* Returns 0 or -ENOMEM. */
int ledger_new(struct ledger **ret_l);
void ledger_free(struct ledger **l);

/* A space is born; parent 0: empty, else it inherits parent's intervals and pages (O(1)).
 * -EEXIST, -ENOENT (no such parent), -ENOMEM. */
int ledger_space_new(struct ledger *l, u32 space, u32 parent);
/* -ENOENT when unknown. The space's memory is let go; queries give nothing afterwards. */
int ledger_space_end(struct ledger *l, u32 space);

/* [start, end) is now mapped, with origin; whatever lay there ends (MAP_FIXED). Page aligned, not
 * empty, below 2^57, else -EINVAL. */
int ledger_map(struct ledger *l, u32 space, u64 start, u64 end, u32 origin);
/* The same for a mapping that is met, not announced: allocations in it stay. */
int ledger_claim(struct ledger *l, u32 space, u64 start, u64 end, u32 origin);
int ledger_unmap(struct ledger *l, u32 space, u64 start, u64 end);
/* mremap: [old_start, +old_len) moves to new_start (pages and origins follow); growth beyond
 * old_len gets origin; shrink drops the tail. old_len 0 duplicates a shared mapping: origin for all
 * of it. dontunmap: the old range stays mapped, its pages gone. Overlap of old and new only when
 * equal. */
int ledger_remap(struct ledger *l, u32 space, u64 old_start, u64 old_len, u64 new_start,
		 u64 new_len, int dontunmap, u32 origin);
/* The page at addr (1 << order pages, naturally aligned, clipped to its interval) got new backing
 * by fault origin. *ret_new_pages: pages not faulted before in this interval generation.
 * *ret_origin: origin of the interval, 0 when the address is in none (then nothing is recorded). */
int ledger_fault(struct ledger *l, u32 space, u64 addr, u32 order, u32 fault_origin,
		 u32 *ret_origin, u32 *ret_new_pages);
/* Page generations in [start, end) end; intervals stay (MADV_DONTNEED, MADV_REMOVE). The
 * "faulted before" memory of ledger_fault() stays too: a page faulted again is not a new page. */
int ledger_discard(struct ledger *l, u32 space, u64 start, u64 end);

struct ledger_interval {
	u64 start, end;
	u32 origin;
	u32 gen; /* unique within the ledger, grows with birth; survivors of a split get new ones */
};

/* Interval at addr: 1 found, 0 none. */
int ledger_find(const struct ledger *l, u32 space, u64 addr, struct ledger_interval *ret);
/* First interval with end > addr: 1 found, 0 none. Iterate with addr = ret->end. */
int ledger_next(const struct ledger *l, u32 space, u64 addr, struct ledger_interval *ret);
/* Fault origin of the page generation at addr, 0 when none is known. */
u32 ledger_page(const struct ledger *l, u32 space, u64 addr);
u64 ledger_mapped_bytes(const struct ledger *l, u32 space);

/* ---- alloc.c: allocations, byte by byte, inside mappings ---- */

/* [start, +size) is allocated, which proves that what it overlaps of its family is not any more. A
 * size of 0 occupies nothing. birth: number of the event, never 0. */
int ledger_alloc(struct ledger *l, u32 space, u32 family, u64 start, u64 size, u32 origin,
		 u64 birth);
/* The same of a sampled one, which stands for weight such allocations. Where it was freed nothing
 * is known of what lies there. */
int ledger_sample(struct ledger *l, u32 space, u32 family, u64 start, u64 size, u32 origin,
		  u64 birth, float weight);
/* The allocation at start, born at or before the event numbered until, is given back. Returns 1
 * when there was one, 0, or -errno. */
int ledger_alloc_end(struct ledger *l, u32 space, u32 family, u64 start, u64 until);
/* Pages of [start, end) are given back (and are zero when touched again), or backed anew: nothing
 * freed lies on them. */
int ledger_forget_freed(struct ledger *l, u32 space, u64 start, u64 end);
/* It is not known any more whether what was freed there lived on the pages that are there now. */
int ledger_doubt_freed(struct ledger *l, u32 space, u64 start, u64 end);

enum ledger_state { LEDGER_NEVER, LEDGER_LIVE, LEDGER_FREED };

struct ledger_piece {
	u64 end;
	u64 birth; /* 0: see node.birth */
	u32 origin; /* of the innermost live allocation, else of the last freed one; else 0 */
	float weight; /* of that allocation */
	enum ledger_state state;
};

/* What addr is, and how far, but not beyond limit, that goes on. */
void ledger_piece(const struct ledger *l, u32 space, u64 addr, u64 limit, struct ledger_piece *ret);
/* Has the space allocations, live or freed, in [start, end)? */
int ledger_has_allocs(const struct ledger *l, u32 space, u64 start, u64 end);

/* ---- alloc.c: names that the application gives to ranges, byte by byte ---- */

/* [start, end) is called name from now on, never 0, until it is unmapped or moved. */
int ledger_name(struct ledger *l, u32 space, u64 start, u64 end, u32 name);
/* What of it is called name is so no more. */
int ledger_unname(struct ledger *l, u32 space, u64 start, u64 end, u32 name);
/* What addr is called, 0 nothing, and how far, but not beyond *end, that goes on. */
u32 ledger_named(const struct ledger *l, u32 space, u64 addr, u64 *end);

/* Bytes the ledger holds on the heap. */
u64 ledger_memory(const struct ledger *l);

#endif
