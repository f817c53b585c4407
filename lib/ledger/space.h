/* SPDX-License-Identifier: GPL-2.0-only
 * The insides of struct ledger, in a header of their own so that the unit test can lower
 * heap.limit. Nobody else includes this.
 */
#ifndef MP_LEDGER_SPACE_H
#define MP_LEDGER_SPACE_H

#include "lib/ledger/treap.h"

#define SPACE_BUCKETS 1024

struct view {
	struct node *intervals, *pages;
	u64 mapped;
};

struct space {
	struct space *next;
	struct view view;
	u32 id;
};

struct ledger {
	struct heap heap;
	struct space *spaces[SPACE_BUCKETS];
};

#endif
