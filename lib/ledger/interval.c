/* SPDX-License-Identifier: GPL-2.0-only
 * Intervals: cutting, adding and moving. An interval is only ever touched on behalf of an event
 * that ends its generation, hence each edit here hands out a new one.
 */
#include <errno.h>
#include "lib/ledger/interval.h"

struct node *iv_next(struct node *n, u64 addr)
{
	struct node *best = NULL;

	while (n) {
		if (n->end > addr) {
			best = n;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return best;
}

int iv_overlaps(struct node *root, u64 start, u64 end)
{
	struct node *n = iv_next(root, start);

	return n && n->key < end;
}

u64 iv_bytes(const struct node *n)
{
	if (!n)
		return 0;
	return n->end - n->key + iv_bytes(n->left) + iv_bytes(n->right);
}

int iv_add(struct heap *h, struct node **root, u64 start, u64 end, u32 origin)
{
	struct node *n = node_new(h, start);

	if (!n)
		return -ENOMEM;
	n->end = end;
	n->origin = origin;
	n->gen = ++h->gen;
	return treap_put(h, root, start, n);
}

/* Makes at a boundary when it lies inside an interval. */
static int iv_break(struct heap *h, struct node **root, u64 at)
{
	struct node *n = iv_next(*root, at);
	u64 end;
	int err;

	if (!n || n->key >= at)
		return 0;
	err = treap_take(h, root, n->key, n->key + 1, &n);
	if (err)
		return err;
	n = node_own(h, n);
	if (!n)
		return -ENOMEM;
	end = n->end;
	n->end = at;
	n->gen = ++h->gen;
	err = iv_add(h, root, at, end, n->origin);
	if (err) {
		node_put(h, n);
		return err;
	}
	return treap_put(h, root, n->key, n);
}

int iv_cut(struct heap *h, struct node **root, u64 start, u64 end, struct node **ret_cut)
{
	int err;

	*ret_cut = NULL;
	err = iv_break(h, root, start);
	if (err)
		return err;
	err = iv_break(h, root, end);
	if (err)
		return err;
	return treap_take(h, root, start, end, ret_cut);
}

int iv_rebirth(struct heap *h, struct node **root, u64 delta)
{
	struct node *n = *root;
	int err;

	if (!n)
		return 0;
	*root = n = node_own(h, n);
	if (!n)
		return -ENOMEM;
	err = iv_rebirth(h, &n->left, delta);
	if (err)
		return err;
	n->key += delta;
	n->end += delta;
	n->gen = ++h->gen;
	return iv_rebirth(h, &n->right, delta);
}
