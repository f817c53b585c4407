/* SPDX-License-Identifier: GPL-2.0-only
 * The allocation layer: trees of ranges that are bytes, not pages. One of each family's live
 * allocations, and one of what was freed, where neighbours of one origin are one range: it grows
 * with what differs, not with how often something was freed.
 */
#include <errno.h>
#include "lib/ledger/interval.h"
#include "lib/ledger/space.h"

static u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* A new node, NULL: no memory. */
static struct node *range_new(struct heap *h, u64 start, u64 end, u32 origin, u64 birth)
{
	struct node *n = node_new(h, start);

	if (!n)
		return NULL;
	n->end = end;
	n->origin = origin;
	n->birth = birth;
	n->weight = 1;
	return n;
}

static int add(struct heap *h, struct node **root, struct node *n)
{
	u64 start;

	if (!n)
		return -ENOMEM;
	start = n->key;
	if (treap_add_private(h, root, n))
		return 0;
	return treap_put(h, root, start, n);
}

/* The range that begins before at and goes on behind it, else NULL. */
static struct node *across(struct node *root, u64 at)
{
	struct node *n = iv_next(root, at);

	return n && n->key < at ? n : NULL;
}

/* The range at key is to end at end. */
static int shorten(struct heap *h, struct node **root, u64 key, u64 end)
{
	struct node *n;
	int err = treap_take(h, root, key, key + 1, &n);

	if (err || !n)
		return err;
	n = node_own(h, n);
	if (!n)
		return -ENOMEM;
	n->end = end;
	return treap_put(h, root, key, n);
}

/* ---- ranges that are cut where others begin: what was freed, what has a name ---- */

/* Takes [start, end) out. Ranges are cut where they lie across its ends. */
static int ranges_cut(struct heap *h, struct node **root, u64 start, u64 end, struct node **ret_cut)
{
	const u64 ends[] = {start, end};
	struct node *n, was;
	u32 i;
	int err;

	*ret_cut = NULL;
	for (i = 0; i < 2; i++) {
		n = across(*root, ends[i]);
		if (!n)
			continue;
		was = *n;
		err = shorten(h, root, was.key, ends[i]);
		if (!err)
			err = add(h, root, range_new(h, ends[i], was.end, was.origin, was.birth));
		if (err)
			return err;
	}
	return treap_take(h, root, start, end, ret_cut);
}

static int ranges_drop(struct heap *h, struct node **root, u64 start, u64 end)
{
	struct node *cut;
	int err;

	if (!iv_overlaps(*root, start, end))
		return 0;
	err = ranges_cut(h, root, start, end, &cut);
	node_put(h, cut);
	return err;
}

/* ---- what was freed ---- */

/* Takes the neighbour that touches *start or *end out, if it is of the same origin, and grows the
 * range by it. The weaker knowledge of the two is the whole's. */
static int swallow(struct heap *h, struct node **root, struct node *n, u32 origin, u64 *start,
		   u64 *end, u64 *birth)
{
	struct node *gone;
	int err;

	if (!n || n->origin != origin || (n->end != *start && n->key != *end))
		return 0;
	*birth = min_u64(*birth, n->birth);
	*start = min_u64(*start, n->key);
	*end = max_u64(*end, n->end);
	err = treap_take(h, root, n->key, n->key + 1, &gone);
	node_put(h, gone);
	return err;
}

static int freed_add(struct heap *h, struct node **root, u64 start, u64 end, u32 origin, u64 birth)
{
	int err = ranges_drop(h, root, start, end);

	if (!err)
		err = swallow(h, root, iv_next(*root, start - 1), origin, &start, &end, &birth);
	if (!err)
		err = swallow(h, root, iv_next(*root, end), origin, &start, &end, &birth);
	return err ? err : add(h, root, range_new(h, start, end, origin, birth));
}

/* Does a range of this origin begin at at? */
static int touches(struct node *root, u64 at, u32 origin)
{
	struct node *n = iv_next(root, at);

	return n && n->key == at && n->origin == origin;
}

static int doubt(struct heap *h, struct node **root)
{
	struct node *n = *root;
	int err;

	if (!n)
		return 0;
	*root = n = node_own(h, n);
	if (!n)
		return -ENOMEM;
	n->birth = 0;
	err = doubt(h, &n->left);
	return err ? err : doubt(h, &n->right);
}

/* The same without a copy, where nothing but one range changes and all on the way to it is the
 * tree's alone: 1 done, 0 not possible, -ENOMEM and nothing changed. */
static int freed_add_private(struct heap *h, struct node **root, u64 start, u64 end, u32 origin,
			     u64 birth)
{
	struct node *n = iv_next(*root, start ? start - 1 : 0), *next;

	/* What lies there already, or a part of it. */
	next = n && n->end <= start ? iv_next(*root, start) : n;
	if (next && next->key <= start && next->end >= end &&
	    (next->origin == origin || (next->key == start && next->end == end))) {
		/* Its neighbours would have to be one with it. */
		if (next->origin != origin &&
		    ((n != next && n->end == start && n->origin == origin) ||
		     touches(*root, end, origin)))
			return 0;
		next = treap_find_private(*root, next->key);
		if (!next)
			return 0;
		next->birth = next->origin == origin ? min_u64(next->birth, birth) : birth;
		next->origin = origin;
		return 1;
	}
	if ((next && next->key < end) || (n != next && n->end == start && n->origin == origin) ||
	    touches(*root, end, origin))
		return 0;
	n = range_new(h, start, end, origin, birth);
	if (!n)
		return -ENOMEM;
	if (treap_add_private(h, root, n))
		return 1;
	node_put(h, n);
	return 0;
}

/* ---- live ---- */

/* Takes the allocation at key out; its bytes are freed ones of birth. Of one that was sampled they
 * are not: what is allocated there next may not be. */
static int end_one(struct heap *h, struct view *v, u32 family, const struct node *n, u64 birth)
{
	u64 start = n->key, end = n->end;
	u32 origin = n->origin;
	int is_sampled = n->weight > 1;
	struct node *gone;
	int err = treap_take(h, &v->allocs[family], start, start + 1, &gone);

	node_put(h, gone);
	return err || is_sampled ? err : freed_add(h, &v->freed, start, end, origin, birth);
}

/* Their ends were not seen: nor is it known when that was. */
static int end_overlapped(struct heap *h, struct view *v, u32 family, u64 start, u64 end)
{
	struct node *n;
	int err = 0;

	while (!err && (n = iv_next(v->allocs[family], start)) && n->key < end)
		err = end_one(h, v, family, n, 0);
	return err;
}

int view_drop_allocs(struct heap *h, struct view *v, u64 start, u64 end)
{
	struct node *n;
	u32 i;
	int err = 0;

	for (i = 0; i < LEDGER_FAMILIES && !err; i++) {
		if (!iv_overlaps(v->allocs[i], start, end))
			continue;
		n = across(v->allocs[i], start);
		if (n)
			err = shorten(h, &v->allocs[i], n->key, start);
		if (!err)
			err = treap_take(h, &v->allocs[i], start, end, &n);
		if (!err)
			node_put(h, n);
	}
	if (!err)
		err = ranges_drop(h, &v->freed, start, end);
	return err ? err : ranges_drop(h, &v->named, start, end);
}

int view_drop_freed(struct heap *h, struct view *v, u64 start, u64 end)
{
	return ranges_drop(h, &v->freed, start, end);
}

/* ---- events ---- */

/* An allocation on nothing of its family, in a tree that nobody shares: 1 done, 0 not possible, or
 * -ENOMEM. */
static int add_private(struct heap *h, struct node **root, struct node *n)
{
	return !iv_overlaps(*root, n->key, n->end) && treap_add_private(h, root, n);
}

/* The same for the end of one. */
static int end_private(struct heap *h, struct view *v, u32 family, u64 start)
{
	struct node *n = treap_may_del(v->allocs[family], start);
	int err;

	if (!n)
		return 0;
	if (n->weight > 1) {
		treap_del_private(h, &v->allocs[family], start);
		return 1;
	}
	err = freed_add_private(h, &v->freed, n->key, n->end, n->origin, n->birth);
	if (err > 0)
		treap_del_private(h, &v->allocs[family], start);
	return err;
}

int ledger_sample(struct ledger *l, u32 space, u32 family, u64 start, u64 size, u32 origin,
		  u64 birth, float weight)
{
	struct space *s = ledger_space(l, space);
	struct node *n;
	struct view v;
	int err;

	if (family >= LEDGER_FAMILIES || start + size < start || start + size > LEDGER_ADDR_END)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	if (!size)
		return 0;
	n = range_new(&l->heap, start, start + size, origin, birth);
	if (!n)
		return -ENOMEM;
	n->weight = weight;
	if (add_private(&l->heap, &s->view.allocs[family], n))
		return 0;
	v = view_get(l, s);
	err = end_overlapped(&l->heap, &v, family, start, start + size);
	if (!err)
		err = add(&l->heap, &v.allocs[family], n);
	else
		node_put(&l->heap, n);
	return view_commit(&l->heap, s, &v, err);
}

int ledger_alloc(struct ledger *l, u32 space, u32 family, u64 start, u64 size, u32 origin,
		 u64 birth)
{
	return ledger_sample(l, space, family, start, size, origin, birth, 1);
}

int ledger_alloc_end(struct ledger *l, u32 space, u32 family, u64 start, u64 until)
{
	struct space *s = ledger_space(l, space);
	struct node *n;
	struct view v;
	int err;

	if (family >= LEDGER_FAMILIES)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	n = treap_find(s->view.allocs[family], start);
	if (!n || n->birth > until)
		return 0;
	err = end_private(&l->heap, &s->view, family, start);
	if (err)
		return err;
	v = view_get(l, s);
	err = view_commit(&l->heap, s, &v, end_one(&l->heap, &v, family, n, n->birth));
	return err ? err : 1;
}

static int change_freed(struct ledger *l, u32 space, u64 start, u64 end, int keep)
{
	struct space *s = ledger_space(l, space);
	struct node *cut = NULL;
	struct view v;
	int err;

	if (!s)
		return -ENOENT;
	if (!iv_overlaps(s->view.freed, start, end))
		return 0;
	v = view_get(l, s);
	err = ranges_cut(&l->heap, &v.freed, start, end, &cut);
	if (!err && keep)
		err = doubt(&l->heap, &cut);
	if (!err && keep)
		err = treap_put(&l->heap, &v.freed, start, cut);
	else
		node_put(&l->heap, cut);
	return view_commit(&l->heap, s, &v, err);
}

int ledger_forget_freed(struct ledger *l, u32 space, u64 start, u64 end)
{
	return change_freed(l, space, start, end, 0);
}

int ledger_doubt_freed(struct ledger *l, u32 space, u64 start, u64 end)
{
	return change_freed(l, space, start, end, 1);
}

/* ---- names ---- */

int ledger_name(struct ledger *l, u32 space, u64 start, u64 end, u32 name)
{
	struct space *s = ledger_space(l, space);
	struct view v;
	int err;

	if (start >= end || end > LEDGER_ADDR_END)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	v = view_get(l, s);
	err = ranges_drop(&l->heap, &v.named, start, end);
	if (!err)
		err = add(&l->heap, &v.named, range_new(&l->heap, start, end, name, 0));
	return view_commit(&l->heap, s, &v, err);
}

int ledger_unname(struct ledger *l, u32 space, u64 start, u64 end, u32 name)
{
	struct space *s = ledger_space(l, space);
	u64 at, stop;
	struct node *n;
	struct view v;
	int err = 0;

	if (!s)
		return -ENOENT;
	v = view_get(l, s);
	for (at = start; at < end && !err && (n = iv_next(v.named, at)) && n->key < end;
	     at = stop) {
		stop = min_u64(n->end, end);
		if (n->origin == name)
			err = ranges_drop(&l->heap, &v.named, max_u64(n->key, start), stop);
	}
	return view_commit(&l->heap, s, &v, err);
}

u32 ledger_named(const struct ledger *l, u32 space, u64 addr, u64 *end)
{
	const struct space *s = ledger_space(l, space);
	const struct node *n = s ? iv_next(s->view.named, addr) : NULL;

	if (!n)
		return 0;
	*end = min_u64(*end, n->key > addr ? n->key : n->end);
	return n->key > addr ? 0 : n->origin;
}

/* ---- questions ---- */

/* The piece ends where n begins, or n is the piece: 1. */
static int is_in(const struct node *n, u64 addr, struct ledger_piece *ret)
{
	if (n && n->key > addr)
		ret->end = min_u64(ret->end, n->key);
	return n && n->key <= addr;
}

static void is_of(const struct node *n, enum ledger_state state, struct ledger_piece *ret)
{
	ret->end = min_u64(ret->end, n->end);
	ret->origin = n->origin;
	ret->birth = n->birth;
	ret->weight = n->weight;
	ret->state = state;
}

void ledger_piece(const struct ledger *l, u32 space, u64 addr, u64 limit, struct ledger_piece *ret)
{
	const struct space *s = ledger_space(l, space);
	struct node *n;
	u32 i;

	*ret = (struct ledger_piece){.end = limit, .weight = 1, .state = LEDGER_NEVER};
	if (!s)
		return;
	for (i = LEDGER_FAMILIES; i-- > 0;) {
		n = iv_next(s->view.allocs[i], addr);
		if (is_in(n, addr, ret)) {
			is_of(n, LEDGER_LIVE, ret);
			return;
		}
	}
	n = iv_next(s->view.freed, addr);
	if (is_in(n, addr, ret))
		is_of(n, LEDGER_FREED, ret);
}

int ledger_has_allocs(const struct ledger *l, u32 space, u64 start, u64 end)
{
	const struct space *s = ledger_space(l, space);
	u32 i;

	for (i = 0; s && i < LEDGER_FAMILIES; i++)
		if (iv_overlaps(s->view.allocs[i], start, end))
			return 1;
	return s && iv_overlaps(s->view.freed, start, end);
}
