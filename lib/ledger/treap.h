/* SPDX-License-Identifier: GPL-2.0-only
 * A persistent treap of refcounted nodes, the only tree of the ledger. Intervals and 2 MiB page
 * blocks use the same node, so that one path-copying split and merge serves both.
 *
 * Functions that take a node by value consume the caller's reference, also when they fail. Nodes
 * with one reference, reached over nodes with one reference, are edited in place; all others are
 * copied first. Whoever wants to be able to go back holds a reference to the old root meanwhile.
 */
#ifndef MP_LEDGER_TREAP_H
#define MP_LEDGER_TREAP_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct heap {
	u64 bytes; /* held now */
	u64 limit; /* allocations beyond fail; tests lower it to see -ENOMEM */
	u32 seed;
	u32 gen; /* last interval generation given out */
};

struct run {
	u16 first, len; /* pages of a block */
	u32 origin; /* 0: faulted once, no page generation now */
};

/* More than one run; shared by the copies of a node. */
struct chunk {
	u32 refs;
	u16 n, cap;
	struct run runs[];
};

struct node {
	struct node *left, *right;
	u64 key; /* interval, allocation: start; block: VA >> 21 */
	union {
		u64 end;
		struct chunk *chunk; /* when scattered */
		struct run run; /* otherwise: the block's only run */
	};
	u64 birth; /* allocations: number of the event; 0 of a freed one: not known */
	u32 origin; /* intervals, allocations */
	union {
		u32 gen; /* intervals */
		float weight; /* allocations: how many it stands for, 1 unless it was sampled */
	};
	u32 refs;
	u32 prio : 31;
	u32 scattered : 1;
};

void *heap_alloc(struct heap *h, size_t size);
void *heap_grow(struct heap *h, void *p, size_t size, size_t to); /* NULL: p is as before */
void heap_free(struct heap *h, void *p, size_t size);

void chunk_put(struct heap *h, struct chunk *c);
struct node *node_new(struct heap *h, u64 key);
/* NULL when out of memory. */
struct node *node_own(struct heap *h, struct node *n);
struct node *node_get(struct node *n);
void node_put(struct heap *h, struct node *n);

/* *ret_a: keys below key, *ret_b: the others. Both NULL on failure. */
int treap_split(struct heap *h, struct node *n, u64 key, struct node **ret_a, struct node **ret_b);
/* All keys of a are below all of b. *ret NULL on failure. */
int treap_merge(struct heap *h, struct node *a, struct node *b, struct node **ret);
/* Takes the keys in [first, last) out of *root. On failure *root and *ret are NULL. */
int treap_take(struct heap *h, struct node **root, u64 first, u64 last, struct node **ret);
/* Puts t back where a hole is: no key of *root lies between those of t and key. */
int treap_put(struct heap *h, struct node **root, u64 key, struct node *t);
/* Adds n, whose key is new, where every node on the way is the tree's alone: 1 done with nothing
 * copied, 0 not possible and n is still the caller's. */
int treap_add_private(struct heap *h, struct node **root, struct node *n);
/* The node of this key, where it can be taken out with nothing copied; else NULL. */
struct node *treap_may_del(struct node *root, u64 key);
/* Takes it out, and lets it go; only after treap_may_del(). */
void treap_del_private(struct heap *h, struct node **root, u64 key);
/* The node of this key, where every node on the way is the tree's alone; else NULL. */
struct node *treap_find_private(struct node *root, u64 key);
struct node *treap_find(struct node *root, u64 key);

#endif
