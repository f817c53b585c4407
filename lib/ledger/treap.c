/* SPDX-License-Identifier: GPL-2.0-only
 * The persistent treap: see treap.h for who owns what. Recursion is as deep as the tree, which is
 * O(log n) because priorities are random and never depend on keys.
 */
#include <errno.h>
#include <stdlib.h>
#include "lib/ledger/treap.h"

void *heap_alloc(struct heap *h, size_t size)
{
	void *p;

	if (h->bytes + size > h->limit)
		return NULL;
	p = calloc(1, size);
	if (p)
		h->bytes += size;
	return p;
}

void *heap_grow(struct heap *h, void *p, size_t size, size_t to)
{
	void *more;

	if (h->bytes + to - size > h->limit)
		return NULL;
	more = realloc(p, to);
	if (more)
		h->bytes += to - size;
	return more;
}

void heap_free(struct heap *h, void *p, size_t size)
{
	if (!p)
		return;
	h->bytes -= size;
	free(p);
}

void chunk_put(struct heap *h, struct chunk *c)
{
	if (--c->refs == 0)
		heap_free(h, c, sizeof(*c) + c->cap * sizeof(c->runs[0]));
}

struct node *node_new(struct heap *h, u64 key)
{
	struct node *n = heap_alloc(h, sizeof(*n));

	if (!n)
		return NULL;
	h->seed ^= h->seed << 13;
	h->seed ^= h->seed >> 17;
	h->seed ^= h->seed << 5;
	n->key = key;
	n->prio = h->seed >> 1;
	n->refs = 1;
	return n;
}

struct node *node_get(struct node *n)
{
	if (n)
		n->refs++;
	return n;
}

struct node *node_own(struct heap *h, struct node *n)
{
	struct node *c;

	if (n->refs == 1)
		return n;
	c = heap_alloc(h, sizeof(*c));
	if (c) {
		*c = *n;
		c->refs = 1;
		node_get(c->left);
		node_get(c->right);
		if (c->scattered)
			c->chunk->refs++;
	}
	node_put(h, n);
	return c;
}

void node_put(struct heap *h, struct node *n)
{
	if (!n || --n->refs)
		return;
	node_put(h, n->left);
	node_put(h, n->right);
	if (n->scattered)
		chunk_put(h, n->chunk);
	heap_free(h, n, sizeof(*n));
}

int treap_split(struct heap *h, struct node *n, u64 key, struct node **ret_a, struct node **ret_b)
{
	struct node *a, *b;
	int err;

	*ret_a = *ret_b = NULL;
	if (!n)
		return 0;
	n = node_own(h, n);
	if (!n)
		return -ENOMEM;
	if (n->key < key) {
		err = treap_split(h, n->right, key, &a, &b);
		n->right = a;
		a = n;
	} else {
		err = treap_split(h, n->left, key, &a, &b);
		n->left = b;
		b = n;
	}
	if (err) {
		node_put(h, n);
		return err;
	}
	*ret_a = a;
	*ret_b = b;
	return 0;
}

int treap_merge(struct heap *h, struct node *a, struct node *b, struct node **ret)
{
	struct node *n, **side;
	int err;

	*ret = NULL;
	if (!a || !b) {
		*ret = a ? a : b;
		return 0;
	}
	if (a->prio >= b->prio) {
		n = a = node_own(h, a);
		if (!n) {
			node_put(h, b);
			return -ENOMEM;
		}
		side = &n->right;
		err = treap_merge(h, a->right, b, side);
	} else {
		n = b = node_own(h, b);
		if (!n) {
			node_put(h, a);
			return -ENOMEM;
		}
		side = &n->left;
		err = treap_merge(h, a, b->left, side);
	}
	if (err) {
		node_put(h, n);
		return err;
	}
	*ret = n;
	return 0;
}

int treap_take(struct heap *h, struct node **root, u64 first, u64 last, struct node **ret)
{
	struct node *a, *b, *c;
	int err;

	*ret = NULL;
	err = treap_split(h, *root, first, &a, &b);
	*root = NULL;
	if (err)
		return err;
	err = treap_split(h, b, last, &b, &c);
	if (err) {
		node_put(h, a);
		return err;
	}
	err = treap_merge(h, a, c, root);
	if (err) {
		node_put(h, b);
		return err;
	}
	*ret = b;
	return 0;
}

int treap_put(struct heap *h, struct node **root, u64 key, struct node *t)
{
	struct node *a, *b;
	int err;

	if (!t)
		return 0;
	err = treap_split(h, *root, key, &a, &b);
	*root = NULL;
	if (err) {
		node_put(h, t);
		return err;
	}
	err = treap_merge(h, a, t, &a);
	if (err) {
		node_put(h, b);
		return err;
	}
	return treap_merge(h, a, b, root);
}

int treap_add_private(struct heap *h, struct node **root, struct node *n)
{
	struct node *at;

	for (at = *root; at; at = n->key < at->key ? at->left : at->right)
		if (at->refs != 1)
			return 0;
	while (*root && (*root)->prio >= n->prio)
		root = n->key < (*root)->key ? &(*root)->left : &(*root)->right;
	/* Along the way just walked: nothing is copied, so nothing can fail. */
	treap_split(h, *root, n->key, &n->left, &n->right);
	*root = n;
	return 1;
}

struct node *treap_find(struct node *n, u64 key)
{
	while (n && n->key != key)
		n = key < n->key ? n->left : n->right;
	return n;
}

struct node *treap_find_private(struct node *n, u64 key)
{
	while (n && n->refs == 1 && n->key != key)
		n = key < n->key ? n->left : n->right;
	return n && n->refs == 1 ? n : NULL;
}

struct node *treap_may_del(struct node *root, u64 key)
{
	struct node *n = treap_find_private(root, key), *a, *b;

	/* Down the two sides that will meet. */
	for (a = n ? n->left : NULL, b = n ? n->right : NULL; a && b;) {
		if (a->refs != 1 || b->refs != 1)
			return NULL;
		if (a->prio >= b->prio)
			a = a->right;
		else
			b = b->left;
	}
	return n;
}

void treap_del_private(struct heap *h, struct node **root, u64 key)
{
	struct node *n, *a, *b;

	while ((*root)->key != key)
		root = key < (*root)->key ? &(*root)->left : &(*root)->right;
	n = *root;
	for (a = n->left, b = n->right; a && b;) {
		if (a->prio >= b->prio) {
			*root = a;
			root = &a->right;
			a = a->right;
		} else {
			*root = b;
			root = &b->left;
			b = b->left;
		}
	}
	*root = a ? a : b;
	n->left = n->right = NULL;
	node_put(h, n);
}
