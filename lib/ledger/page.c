/* SPDX-License-Identifier: GPL-2.0-only
 * Pages: every edit of a block rewrites its run list into a scratch array and stores the result in
 * the tightest form. The scratch never overflows: runs are disjoint and a block has 512 pages.
 */
#include <errno.h>
#include <string.h>
#include "lib/ledger/page.h"

enum edit {
	EDIT_SET, /* [a, b) becomes one run */
	EDIT_CLEAR, /* [a, b) was never faulted */
	EDIT_KEEP, /* all but [a, b) was never faulted */
	EDIT_DISCARD, /* faulted pages in [a, b) lose their origin */
};

struct scratch {
	u32 n;
	struct run runs[BLOCK_PAGES];
};

static const struct run *block_runs(const struct node *n, u32 *ret_n)
{
	*ret_n = n->scattered ? n->chunk->n : 1;
	return n->scattered ? n->chunk->runs : &n->run;
}

static void emit(struct scratch *s, u32 first, u32 end, u32 origin)
{
	struct run *r = s->n ? &s->runs[s->n - 1] : NULL;

	if (first >= end)
		return;
	if (r && (u32)r->first + r->len == first && r->origin == origin) {
		r->len += end - first;
		return;
	}
	s->runs[s->n++] = (struct run){.first = first, .len = end - first, .origin = origin};
}

static u32 min_u32(u32 x, u32 y)
{
	return x < y ? x : y;
}

static u32 max_u32(u32 x, u32 y)
{
	return x > y ? x : y;
}

/* Returns how many pages of [a, b) had been faulted. */
static u32 block_edit(const struct node *n, enum edit edit, u32 a, u32 b, u32 origin,
		      struct scratch *s)
{
	const struct run *r;
	u32 i, count, lo, hi, end, hit = 0;
	int pending = edit == EDIT_SET;

	s->n = 0;
	r = block_runs(n, &count);
	for (i = 0; i < count; i++) {
		end = r[i].first + r[i].len;
		if (edit != EDIT_KEEP)
			emit(s, r[i].first, min_u32(end, a), r[i].origin);
		lo = max_u32(r[i].first, a);
		hi = min_u32(end, b);
		if (lo < hi) {
			hit += hi - lo;
			if (edit == EDIT_KEEP)
				emit(s, lo, hi, r[i].origin);
			else if (edit == EDIT_DISCARD)
				emit(s, lo, hi, 0);
		}
		if (end <= b)
			continue;
		if (pending)
			emit(s, a, b, origin);
		pending = 0;
		if (edit != EDIT_KEEP)
			emit(s, max_u32(r[i].first, b), end, r[i].origin);
	}
	if (pending)
		emit(s, a, b, origin);
	return hit;
}

static size_t chunk_size(u32 cap)
{
	return sizeof(struct chunk) + cap * sizeof(struct run);
}

/* Room for n runs and a few more. */
static u32 chunk_cap(u32 n)
{
	return min_u32((n + n / 8 + 1) & ~1u, BLOCK_PAGES);
}

static struct chunk *chunk_new(struct heap *h, u32 n)
{
	struct chunk *c = heap_alloc(h, chunk_size(chunk_cap(n)));

	if (!c)
		return NULL;
	c->refs = 1;
	c->cap = chunk_cap(n);
	return c;
}

/* n is the caller's alone, s is not empty. On -ENOMEM the block is as before. */
static int block_store(struct heap *h, struct node *n, const struct scratch *s)
{
	struct chunk *c = n->scattered ? n->chunk : NULL;

	if (s->n == 1) {
		n->run = s->runs[0];
		n->scattered = 0;
		if (c)
			chunk_put(h, c);
		return 0;
	}
	if (!c || c->refs != 1 || c->cap < s->n || c->cap > 2 * s->n + 2) {
		c = chunk_new(h, s->n);
		if (!c)
			return -ENOMEM;
		if (n->scattered)
			chunk_put(h, n->chunk);
		n->chunk = c;
		n->scattered = 1;
	}
	c->n = s->n;
	memcpy(c->runs, s->runs, s->n * sizeof(s->runs[0]));
	return 0;
}

u32 pages_get(struct node *root, u64 page)
{
	struct node *n = treap_find(root, page / BLOCK_PAGES);
	u32 lo = 0, hi, mid, at = page % BLOCK_PAGES;
	const struct run *r;

	if (!n)
		return 0;
	r = block_runs(n, &hi);
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (at < r[mid].first)
			hi = mid;
		else if (at >= (u32)r[mid].first + r[mid].len)
			lo = mid + 1;
		else
			return r[mid].origin;
	}
	return 0;
}

/* How many runs begin at or before the page. Most faults go on where the last one was. */
static u32 runs_before(const struct run *r, u32 n, u32 at)
{
	u32 lo = 0, hi = n, mid;

	if (r[n - 1].first <= at)
		return n;
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (r[mid].first <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Room for half as many runs again, since they come one by one, in a chunk that is nobody else's.
 * NULL where there is none to be had: c is as before. */
static struct chunk *chunk_grow(struct heap *h, struct chunk *c)
{
	u32 cap = chunk_cap(c->n + c->n / 2);
	struct chunk *more = heap_grow(h, c, chunk_size(c->cap), chunk_size(cap));

	if (more)
		more->cap = cap;
	return more;
}

/* One page that no run holds, without rewriting the others. Returns 0 where that is not enough. */
static int block_insert(struct heap *h, struct node *n, u32 at, u32 origin)
{
	struct chunk *c = n->scattered ? n->chunk : NULL;
	struct run *r = c ? c->runs : &n->run;
	u32 count = c ? c->n : 1, i = runs_before(r, count, at);
	u32 end = i ? (u32)r[i - 1].first + r[i - 1].len : 0;
	int before = i && end == at && r[i - 1].origin == origin;
	int behind = i < count && r[i].first == at + 1 && r[i].origin == origin;

	if ((c && c->refs != 1) || end > at || (before && behind))
		return 0;
	if (before) {
		r[i - 1].len++;
		return 1;
	}
	if (behind) {
		r[i].first--;
		r[i].len++;
		return 1;
	}
	if (c && c->n == c->cap)
		c = chunk_grow(h, c);
	if (!c)
		return 0;
	n->chunk = c;
	r = c->runs;
	memmove(&r[i + 1], &r[i], (count - i) * sizeof(*r));
	r[i] = (struct run){.first = (u16)at, .len = 1, .origin = origin};
	c->n++;
	return 1;
}

static int block_add_private(struct heap *h, struct node **root, u64 key, struct run run,
			     struct node **ret_n)
{
	struct node *n = node_new(h, key);

	if (!n)
		return -ENOMEM;
	n->run = run;
	if (treap_add_private(h, root, n)) {
		*ret_n = n;
		return 1;
	}
	node_put(h, n);
	return 0;
}

int pages_set_private(struct heap *h, struct node **root, struct node **near, u64 first, u64 last,
		      u32 origin, u32 *new_pages)
{
	u64 key = first / BLOCK_PAGES;
	u32 a = first % BLOCK_PAGES, len = (u32)(last - first), hit = 0;
	struct node *n = *near && (*near)->key == key ? *near : *root;
	struct scratch s;
	int err;

	if ((last - 1) / BLOCK_PAGES != key)
		return 0;
	while (n && n->refs == 1 && n->key != key)
		n = key < n->key ? n->left : n->right;
	if (n && n->refs != 1)
		return 0;
	if (n)
		*near = n;
	if (!n) {
		err = block_add_private(
			h, root, key, (struct run){.first = a, .len = len, .origin = origin}, near);
		if (err <= 0)
			return err;
	} else if (len != 1 || !block_insert(h, n, a, origin)) {
		hit = block_edit(n, EDIT_SET, a, a + len, origin, &s);
		err = block_store(h, n, &s);
		if (err)
			return err;
	}
	*new_pages += len - hit;
	return 1;
}

static int block_add(struct heap *h, struct node **root, u64 key, struct run run)
{
	struct node *n = node_new(h, key);

	if (!n)
		return -ENOMEM;
	n->run = run;
	return treap_put(h, root, key, n);
}

static int block_set(struct heap *h, struct node **root, u64 first, u64 last, u32 origin,
		     u32 *new_pages)
{
	u64 key = first / BLOCK_PAGES;
	u32 a = first % BLOCK_PAGES, len = last - first;
	struct scratch s;
	struct node *n;

	if (!treap_find(*root, key)) {
		*new_pages += len;
		return block_add(h, root, key,
				 (struct run){.first = a, .len = len, .origin = origin});
	}
	for (;;) {
		*root = n = node_own(h, *root);
		if (!n)
			return -ENOMEM;
		if (n->key == key)
			break;
		root = key < n->key ? &n->left : &n->right;
	}
	*new_pages += len - block_edit(n, EDIT_SET, a, a + len, origin, &s);
	return block_store(h, n, &s);
}

int pages_set(struct heap *h, struct node **root, u64 first, u64 last, u32 origin, u32 *new_pages)
{
	u64 stop;
	int err;

	for (; first < last; first = stop) {
		stop = (first / BLOCK_PAGES + 1) * BLOCK_PAGES;
		if (stop > last)
			stop = last;
		err = block_set(h, root, first, stop, origin, new_pages);
		if (err)
			return err;
	}
	return 0;
}

static int discard_all(struct heap *h, struct node **root, u64 first, u64 last)
{
	struct node *n = *root;
	struct scratch s;
	u64 base;
	int err;

	if (!n)
		return 0;
	*root = n = node_own(h, n);
	if (!n)
		return -ENOMEM;
	base = n->key * BLOCK_PAGES;
	block_edit(n, EDIT_DISCARD, first > base ? first - base : 0,
		   last - base < BLOCK_PAGES ? last - base : BLOCK_PAGES, 0, &s);
	err = block_store(h, n, &s);
	if (err)
		return err;
	err = discard_all(h, &n->left, first, last);
	if (err)
		return err;
	return discard_all(h, &n->right, first, last);
}

int pages_discard(struct heap *h, struct node **root, u64 first, u64 last)
{
	u64 key = first / BLOCK_PAGES;
	struct node *t;
	int err;

	err = treap_take(h, root, key, (last - 1) / BLOCK_PAGES + 1, &t);
	if (err)
		return err;
	err = discard_all(h, &t, first, last);
	if (err) {
		node_put(h, t);
		return err;
	}
	return treap_put(h, root, key, t);
}

/* n holds the result of the edit, or is released and NULL when nothing is left or it failed. */
static int block_reduce(struct heap *h, struct node **n, enum edit edit, u32 a, u32 b)
{
	struct scratch s;
	int err = 0;

	if (!*n)
		return 0;
	*n = node_own(h, *n);
	if (!*n)
		return -ENOMEM;
	block_edit(*n, edit, a, b, 0, &s);
	if (s.n)
		err = block_store(h, *n, &s);
	if (err || !s.n) {
		node_put(h, *n);
		*n = NULL;
	}
	return err;
}

/* Moves the pages [a, b) of block key from *root to *cut, which holds no such block. */
static int block_cut(struct heap *h, struct node **root, u64 key, u32 a, u32 b, struct node **cut)
{
	struct node *rest, *part;
	int err;

	err = treap_take(h, root, key, key + 1, &rest);
	if (err)
		return err;
	part = node_get(rest);
	err = block_reduce(h, &part, EDIT_KEEP, a, b);
	if (!err)
		err = block_reduce(h, &rest, EDIT_CLEAR, a, b);
	if (err) {
		node_put(h, part);
		node_put(h, rest);
		return err;
	}
	err = treap_put(h, cut, key, part);
	if (err) {
		node_put(h, rest);
		return err;
	}
	return treap_put(h, root, key, rest);
}

int pages_cut(struct heap *h, struct node **root, u64 first, u64 last, struct node **ret_cut)
{
	u64 lo = (first + BLOCK_PAGES - 1) / BLOCK_PAGES, hi = last / BLOCK_PAGES;
	u32 a = first % BLOCK_PAGES, b = last % BLOCK_PAGES;
	int err;

	*ret_cut = NULL;
	if (lo > hi)
		return block_cut(h, root, hi, a, b, ret_cut);
	err = treap_take(h, root, lo, hi, ret_cut);
	if (!err && a)
		err = block_cut(h, root, lo - 1, a, BLOCK_PAGES, ret_cut);
	if (!err && b)
		err = block_cut(h, root, hi, 0, b, ret_cut);
	if (err) {
		node_put(h, *ret_cut);
		*ret_cut = NULL;
	}
	return err;
}

/* A block whose pages keep their places within it can share its chunk. */
static int block_paste(struct heap *h, struct node **root, const struct node *from, u64 key)
{
	struct node *n = node_new(h, key);

	if (!n)
		return -ENOMEM;
	n->scattered = from->scattered;
	if (from->scattered) {
		n->chunk = from->chunk;
		n->chunk->refs++;
	} else {
		n->run = from->run;
	}
	return treap_put(h, root, key, n);
}

int pages_paste(struct heap *h, struct node **root, const struct node *from, u64 delta)
{
	const struct run *r;
	u64 first;
	u32 i, count, ignored = 0;
	int err;

	if (!from)
		return 0;
	err = pages_paste(h, root, from->left, delta);
	if (err)
		return err;
	first = from->key * BLOCK_PAGES + delta;
	if (first % BLOCK_PAGES == 0 && !treap_find(*root, first / BLOCK_PAGES)) {
		err = block_paste(h, root, from, first / BLOCK_PAGES);
		if (err)
			return err;
		return pages_paste(h, root, from->right, delta);
	}
	r = block_runs(from, &count);
	for (i = 0; i < count; i++) {
		err = pages_set(h, root, first + r[i].first, first + r[i].first + r[i].len,
				r[i].origin, &ignored);
		if (err)
			return err;
	}
	return pages_paste(h, root, from->right, delta);
}
