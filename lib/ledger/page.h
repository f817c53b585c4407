/* SPDX-License-Identifier: GPL-2.0-only
 * Pages of one space: a treap of 2 MiB blocks that were ever faulted. A block is a list of runs of
 * equal pages; a single run lives in the node itself, so a homogeneous block is one node. A page
 * in no run was never faulted in its interval. Page numbers are VA >> 12. On failure *root is in
 * an undefined but releasable state: work on a reference of your own and drop it.
 */
#ifndef MP_LEDGER_PAGE_H
#define MP_LEDGER_PAGE_H

#include "lib/ledger/treap.h"

#define BLOCK_PAGES 512u

u32 pages_get(struct node *root, u64 page);
/* *new_pages grows by the pages in [first, last) that were never faulted. */
int pages_set(struct heap *h, struct node **root, u64 first, u64 last, u32 origin, u32 *new_pages);
/* pages_set() inside a block that is not shared, or not there yet: 1 done with nothing copied, 0
 * not possible, -ENOMEM and nothing changed. *near is such a block of the tree, looked at first, or
 * NULL; afterwards it is the block that was set. */
int pages_set_private(struct heap *h, struct node **root, struct node **near, u64 first, u64 last,
		      u32 origin, u32 *new_pages);
int pages_discard(struct heap *h, struct node **root, u64 first, u64 last);
/* Takes [first, last) out of *root. */
int pages_cut(struct heap *h, struct node **root, u64 first, u64 last, struct node **ret_cut);
/* Adds the pages of from, delta pages further up, to places that hold none. from stays the
 * caller's. */
int pages_paste(struct heap *h, struct node **root, const struct node *from, u64 delta);

#endif
