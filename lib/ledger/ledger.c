/* SPDX-License-Identifier: GPL-2.0-only
 * The ledger proper: spaces, and events as edits of a view. An event works on references of its
 * own to both trees and replaces the space's view only when all of it succeeded, so every function
 * that returns an error has changed nothing (generation numbers may be skipped).
 */
#include <errno.h>
#include <stdlib.h>
#include "lib/ledger/interval.h"
#include "lib/ledger/ledger.h"
#include "lib/ledger/page.h"
#include "lib/ledger/space.h"

#define ORDER_MAX 30 /* 4 TiB; beyond is no page of any architecture */

struct space *ledger_space(const struct ledger *l, u32 id)
{
	struct space *s = l->spaces[id % SPACE_BUCKETS];

	while (s && s->id != id)
		s = s->next;
	return s;
}

struct view view_get(struct ledger *l, struct space *s)
{
	u32 i;

	s->edit = ++l->edits;
	node_get(s->view.intervals);
	node_get(s->view.pages);
	node_get(s->view.freed);
	node_get(s->view.named);
	for (i = 0; i < LEDGER_FAMILIES; i++)
		node_get(s->view.allocs[i]);
	return s->view;
}

static void view_put(struct heap *h, struct view *v)
{
	u32 i;

	node_put(h, v->intervals);
	node_put(h, v->pages);
	node_put(h, v->freed);
	node_put(h, v->named);
	for (i = 0; i < LEDGER_FAMILIES; i++)
		node_put(h, v->allocs[i]);
}

/* Makes v the state of s, or forgets it after an error. Returns err. */
int view_commit(struct heap *h, struct space *s, struct view *v, int err)
{
	if (err) {
		view_put(h, v);
		return err;
	}
	view_put(h, &s->view);
	s->view = *v;
	return 0;
}

static int view_cut(struct heap *h, struct view *v, u64 start, u64 end)
{
	struct node *cut;
	int err;

	err = iv_cut(h, &v->intervals, start, end, &cut);
	if (err)
		return err;
	v->mapped -= iv_bytes(cut);
	node_put(h, cut);
	err = pages_cut(h, &v->pages, start / MP_PAGE_SIZE, end / MP_PAGE_SIZE, &cut);
	node_put(h, cut);
	return err;
}

static int view_unmap(struct heap *h, struct view *v, u64 start, u64 end)
{
	int err = view_drop_allocs(h, v, start, end);

	return err ? err : view_cut(h, v, start, end);
}

static int view_add(struct heap *h, struct view *v, u64 start, u64 end, u32 origin)
{
	v->mapped += end - start;
	return iv_add(h, &v->intervals, start, end, origin);
}

static int view_map(struct heap *h, struct view *v, u64 start, u64 end, u32 origin)
{
	int err = view_unmap(h, v, start, end);

	return err ? err : view_add(h, v, start, end, origin);
}

/* What is allocated there was announced, though its mapping was not. */
static int view_claim(struct heap *h, struct view *v, u64 start, u64 end, u32 origin)
{
	int err = view_cut(h, v, start, end);

	return err ? err : view_add(h, v, start, end, origin);
}

/* Consumes cut: the intervals of an old place, of which old ones are to stay there too. */
static int view_move_intervals(struct heap *h, struct view *v, struct node *cut, u64 old_start,
			       u64 new_start, int stay)
{
	struct node *old = NULL;
	int err = 0;

	if (stay) {
		v->mapped += iv_bytes(cut);
		old = node_get(cut);
		err = iv_rebirth(h, &old, 0);
		if (!err)
			err = treap_put(h, &v->intervals, old_start, old);
		else
			node_put(h, old);
	}
	if (!err)
		err = iv_rebirth(h, &cut, new_start - old_start);
	if (err) {
		node_put(h, cut);
		return err;
	}
	return treap_put(h, &v->intervals, new_start, cut);
}

static int view_move(struct heap *h, struct view *v, u64 old_start, u64 len, u64 new_start,
		     u64 new_len, int stay)
{
	struct node *intervals, *pages;
	int err;

	err = view_unmap(h, v, new_start, new_start + new_len);
	/* An allocator that moves a mapping announces what it moved. */
	if (!err)
		err = view_drop_allocs(h, v, old_start, old_start + len);
	if (err)
		return err;
	err = iv_cut(h, &v->intervals, old_start, old_start + len, &intervals);
	if (err)
		return err;
	err = view_move_intervals(h, v, intervals, old_start, new_start, stay);
	if (err)
		return err;
	err = pages_cut(h, &v->pages, old_start / MP_PAGE_SIZE, (old_start + len) / MP_PAGE_SIZE,
			&pages);
	if (err)
		return err;
	err = pages_paste(h, &v->pages, pages, new_start / MP_PAGE_SIZE - old_start / MP_PAGE_SIZE);
	node_put(h, pages);
	return err;
}

int ledger_new(struct ledger **ret_l)
{
	struct ledger *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->heap.bytes = sizeof(*l);
	l->heap.limit = ~0ull;
	l->heap.seed = 2463534242u;
	*ret_l = l;
	return 0;
}

void ledger_free(struct ledger **l)
{
	u32 i;

	if (!*l)
		return;
	for (i = 0; i < SPACE_BUCKETS; i++)
		while ((*l)->spaces[i])
			ledger_space_end(*l, (*l)->spaces[i]->id);
	free(*l);
	*l = NULL;
}

int ledger_space_new(struct ledger *l, u32 space, u32 parent)
{
	struct space *p = NULL, *s;

	if (ledger_space(l, space))
		return -EEXIST;
	if (parent) {
		p = ledger_space(l, parent);
		if (!p)
			return -ENOENT;
	}
	s = heap_alloc(&l->heap, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->id = space;
	s->edit = ++l->edits;
	if (p)
		s->view = view_get(l, p);
	s->next = l->spaces[space % SPACE_BUCKETS];
	l->spaces[space % SPACE_BUCKETS] = s;
	return 0;
}

int ledger_space_end(struct ledger *l, u32 space)
{
	struct space **at = &l->spaces[space % SPACE_BUCKETS], *s;

	while (*at && (*at)->id != space)
		at = &(*at)->next;
	s = *at;
	if (!s)
		return -ENOENT;
	*at = s->next;
	view_put(&l->heap, &s->view);
	heap_free(&l->heap, s, sizeof(*s));
	return 0;
}

static int range_ok(u64 start, u64 len)
{
	return start % MP_PAGE_SIZE == 0 && len % MP_PAGE_SIZE == 0 && len &&
	       start < LEDGER_ADDR_END && len <= LEDGER_ADDR_END - start;
}

static int map_by(struct ledger *l, u32 space, u64 start, u64 end, u32 origin,
		  int (*fn)(struct heap *h, struct view *v, u64 start, u64 end, u32 origin))
{
	struct space *s = ledger_space(l, space);
	struct view v;

	if (end < start || !range_ok(start, end - start))
		return -EINVAL;
	if (!s)
		return -ENOENT;
	v = view_get(l, s);
	return view_commit(&l->heap, s, &v, fn(&l->heap, &v, start, end, origin));
}

int ledger_map(struct ledger *l, u32 space, u64 start, u64 end, u32 origin)
{
	return map_by(l, space, start, end, origin, view_map);
}

int ledger_claim(struct ledger *l, u32 space, u64 start, u64 end, u32 origin)
{
	return map_by(l, space, start, end, origin, view_claim);
}

int ledger_unmap(struct ledger *l, u32 space, u64 start, u64 end)
{
	struct space *s = ledger_space(l, space);
	struct view v;

	if (end < start || !range_ok(start, end - start))
		return -EINVAL;
	if (!s)
		return -ENOENT;
	v = view_get(l, s);
	return view_commit(&l->heap, s, &v, view_unmap(&l->heap, &v, start, end));
}

static int remap_ok(u64 old_start, u64 old_len, u64 new_start, u64 new_len, int dontunmap)
{
	if (!range_ok(new_start, new_len))
		return 0;
	if (!old_len)
		return !dontunmap && old_start % MP_PAGE_SIZE == 0 && old_start < LEDGER_ADDR_END;
	if (!range_ok(old_start, old_len))
		return 0;
	/* As in the kernel: it moves everything, and elsewhere. */
	if (dontunmap && (old_start == new_start || old_len != new_len))
		return 0;
	return old_start == new_start || old_start + old_len <= new_start ||
	       new_start + new_len <= old_start;
}

int ledger_remap(struct ledger *l, u32 space, u64 old_start, u64 old_len, u64 new_start,
		 u64 new_len, int dontunmap, u32 origin)
{
	u64 keep = old_len < new_len ? old_len : new_len;
	struct space *s = ledger_space(l, space);
	struct view v;
	int err = 0;

	if (!remap_ok(old_start, old_len, new_start, new_len, dontunmap))
		return -EINVAL;
	if (!s)
		return -ENOENT;
	v = view_get(l, s);
	if (old_len > keep)
		err = view_unmap(&l->heap, &v, old_start + keep, old_start + old_len);
	if (!err && keep && old_start != new_start)
		err = view_move(&l->heap, &v, old_start, keep, new_start, new_len, dontunmap);
	if (!err && new_len > keep)
		err = view_map(&l->heap, &v, new_start + keep, new_start + new_len, origin);
	return view_commit(&l->heap, s, &v, err);
}

/* What is known of the block. */
static struct near *near_of(struct ledger *l, const struct space *s, u64 block)
{
	struct near *set = l->near[block % NEAR_SETS], old = set[0];

	if (old.edit == s->edit && old.block && old.block->key == block)
		return set;
	set[0] = set[1];
	set[1] = old;
	if (set[0].edit != s->edit)
		set[0] = (struct near){.edit = s->edit};
	return set;
}

/* The interval at addr, or NULL. */
static struct node *interval_at(const struct space *s, struct near *near, u64 addr)
{
	struct node *n = near->interval;

	if (n && n->key <= addr && addr < n->end)
		return n;
	n = iv_next(s->view.intervals, addr);
	if (!n || n->key > addr)
		return NULL;
	near->interval = n;
	return n;
}

int ledger_fault(struct ledger *l, u32 space, u64 addr, u32 order, u32 fault_origin,
		 u32 *ret_origin, u32 *ret_new_pages)
{
	struct space *s = ledger_space(l, space);
	u32 origin, new_pages = 0;
	u64 first, last;
	struct near *near;
	struct node *n;
	struct view v;
	int err;

	*ret_origin = *ret_new_pages = 0;
	if (order > ORDER_MAX)
		return -EINVAL;
	if (!s)
		return -ENOENT;
	near = near_of(l, s, addr / MP_PAGE_SIZE / BLOCK_PAGES);
	n = interval_at(s, near, addr);
	if (!n)
		return 0;
	origin = n->origin;
	first = addr / MP_PAGE_SIZE >> order << order;
	last = first + (1ull << order);
	if (first < n->key / MP_PAGE_SIZE)
		first = n->key / MP_PAGE_SIZE;
	if (last > n->end / MP_PAGE_SIZE)
		last = n->end / MP_PAGE_SIZE;
	err = pages_set_private(&l->heap, &s->view.pages, &near->block, first, last, fault_origin,
				&new_pages);
	if (err == 0) {
		v = view_get(l, s);
		err = pages_set(&l->heap, &v.pages, first, last, fault_origin, &new_pages);
		err = view_commit(&l->heap, s, &v, err);
	}
	if (err < 0)
		return err;
	*ret_origin = origin;
	*ret_new_pages = new_pages;
	return 0;
}

int ledger_discard(struct ledger *l, u32 space, u64 start, u64 end)
{
	struct space *s = ledger_space(l, space);
	struct view v;
	int err;

	if (end < start || !range_ok(start, end - start))
		return -EINVAL;
	if (!s)
		return -ENOENT;
	v = view_get(l, s);
	err = pages_discard(&l->heap, &v.pages, start / MP_PAGE_SIZE, end / MP_PAGE_SIZE);
	return view_commit(&l->heap, s, &v, err);
}

static int interval_ret(const struct node *n, struct ledger_interval *ret)
{
	ret->start = n->key;
	ret->end = n->end;
	ret->origin = n->origin;
	ret->gen = n->gen;
	return 1;
}

int ledger_find(const struct ledger *l, u32 space, u64 addr, struct ledger_interval *ret)
{
	const struct space *s = ledger_space(l, space);
	const struct node *n = s ? iv_next(s->view.intervals, addr) : NULL;

	return n && n->key <= addr ? interval_ret(n, ret) : 0;
}

int ledger_next(const struct ledger *l, u32 space, u64 addr, struct ledger_interval *ret)
{
	const struct space *s = ledger_space(l, space);
	const struct node *n = s ? iv_next(s->view.intervals, addr) : NULL;

	return n ? interval_ret(n, ret) : 0;
}

u32 ledger_page(const struct ledger *l, u32 space, u64 addr)
{
	const struct space *s = ledger_space(l, space);

	return s ? pages_get(s->view.pages, addr / MP_PAGE_SIZE) : 0;
}

u64 ledger_mapped_bytes(const struct ledger *l, u32 space)
{
	const struct space *s = ledger_space(l, space);

	return s ? s->view.mapped : 0;
}

u64 ledger_memory(const struct ledger *l)
{
	return l->heap.bytes;
}
