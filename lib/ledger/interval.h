/* SPDX-License-Identifier: GPL-2.0-only
 * Intervals of one space as a treap keyed by start. They never overlap, so order by start is order
 * by end too. On failure *root is in an undefined but releasable state: work on a reference of
 * your own and drop it.
 */
#ifndef MP_LEDGER_INTERVAL_H
#define MP_LEDGER_INTERVAL_H

#include "lib/ledger/treap.h"

/* First interval with end > addr, or NULL. */
struct node *iv_next(struct node *root, u64 addr);
/* Does an interval have a byte of [start, end)? */
int iv_overlaps(struct node *root, u64 start, u64 end);
u64 iv_bytes(const struct node *root);
/* Takes [start, end) out of *root; what is cut lives on with its origin and a new generation. */
int iv_cut(struct heap *h, struct node **root, u64 start, u64 end, struct node **ret_cut);
/* There is a hole at [start, end) already. */
int iv_add(struct heap *h, struct node **root, u64 start, u64 end, u32 origin);
/* Every interval is born again, delta bytes further up. */
int iv_rebirth(struct heap *h, struct node **root, u64 delta);

#endif
