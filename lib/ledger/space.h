/* SPDX-License-Identifier: GPL-2.0-only
 * The insides of struct ledger, in a header of their own so that the unit test can lower
 * heap.limit. Nobody else includes this.
 */
#ifndef MP_LEDGER_SPACE_H
#define MP_LEDGER_SPACE_H

#include "lib/ledger/ledger.h"
#include "lib/ledger/treap.h"

#define SPACE_BUCKETS	1024
#define LEDGER_ADDR_END (1ull << 57)

struct view {
	struct node *intervals, *pages;
	struct node *allocs[LEDGER_FAMILIES], *freed; /* alloc.c */
	struct node *named; /* the same; what the application calls them */
	u64 mapped;
};

struct space {
	struct space *next;
	struct view view;
	u64 edit; /* number of the last edit that may have moved nodes */
	u32 id;
};

#define NEAR_SETS 32

/* Where the latest faults were: threads that fault at the same time go on where each was before. A
 * node that was found over nodes of one reference stays what it is until the view is edited, and
 * faults by this way only add blocks. */
struct near {
	u64 edit; /* the space's, when this was found */
	struct node *interval, *block;
};

struct ledger {
	struct heap heap;
	struct space *spaces[SPACE_BUCKETS];
	struct near near[NEAR_SETS][2]; /* the latest in front */
	u64 edits;
};

/* ledger.c: an event works on a view of its own; commit makes it the space's, or forgets it after
 * an error, which it returns. */
struct space *ledger_space(const struct ledger *l, u32 id);
struct view view_get(struct ledger *l, struct space *s);
int view_commit(struct heap *h, struct space *s, struct view *v, int err);

/* alloc.c: what lay in [start, end) is mapped no more. */
int view_drop_allocs(struct heap *h, struct view *v, u64 start, u64 end);
/* The pages there hold nothing of old any more. */
int view_drop_freed(struct heap *h, struct view *v, u64 start, u64 end);

#endif
