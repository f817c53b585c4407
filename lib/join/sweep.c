/* SPDX-License-Identifier: GPL-2.0-only
 * Lets go of processes that came and went while a recording goes on, with their owners and stacks:
 * memory follows the processes that live. What a living space inherited stays, up to the first of
 * its ancestors. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/access.h"

/* Those that nobody can refer to: ended, in no picture shown, without a living descendant. */
static u32 mark_gone(struct replay *p)
{
	struct space_state *s;
	u32 i, n = 0;

	for (i = 0; i < p->nr_spaces; i++)
		p->spaces[i].gone = 1;
	for (i = 0; i < p->nr_spaces; i++) {
		s = &p->spaces[i];
		if (s->ended && !s->pictured)
			continue;
		/* Upwards, as far as no other has come. */
		for (; s && s->gone; s = s->parent ? space_get(p, s->parent) : NULL)
			s->gone = 0;
	}
	for (i = 0; i < p->nr_spaces; i++)
		n += p->spaces[i].gone;
	return n;
}

static int is_gone(struct replay *p, u32 space)
{
	const struct space_state *s = space_get(p, space);

	return s && s->gone;
}

/* Those that were known, and were swept before a fault of theirs came. */
static int is_nobodys(struct replay *p, u32 space)
{
	return space && (!space_get(p, space) || is_gone(p, space));
}

static int sweep_origins(struct replay *p)
{
	u32 i, n = 0;

	for (i = 1; i < p->nr_origins; i++) {
		struct origin *o = &p->origins[i];

		if (o->unused || !is_nobodys(p, o->space))
			continue;
		sample_release(o);
		memset(o, 0, sizeof(*o));
		o->unused = 1;
		o->next_unused = p->unused_origin;
		p->unused_origin = i;
		n++;
	}
	return n ? origin_rehash(p, p->hash_size) : 0;
}

static int sweep_names(struct replay *p)
{
	struct store all = p->named;
	size_t i;
	int err = 0;

	for (i = 0; i < all.nr && !is_gone(p, store_rec(&all, i)->space); i++)
		;
	if (i == all.nr)
		return 0;
	names_release(p);
	memset(&p->named, 0, sizeof(p->named));
	if (p->nr_stacks)
		memset(p->stacks, 0, p->cap_stacks * sizeof(*p->stacks));
	p->nr_stacks = 0;
	for (i = 0; i < all.nr && !err; i++)
		if (!is_gone(p, store_rec(&all, i)->space))
			err = names_keep(p, store_rec(&all, i));
	store_release(&all);
	return err;
}

static void sweep_spaces(struct replay *p)
{
	u32 i, n = 0;

	for (i = 0; i < p->nr_spaces; i++)
		if (!p->spaces[i].gone)
			p->spaces[n++] = p->spaces[i];
		else
			access_free(p->spaces[i].access);
	p->nr_spaces = n;
	space_reindex(p);
}

int sweep(struct replay *p)
{
	int err;

	if (!mark_gone(p))
		return 0;
	err = sweep_origins(p);
	if (!err)
		err = sweep_names(p);
	sweep_spaces(p);
	return err;
}
