/* SPDX-License-Identifier: GPL-2.0-only
 * Lets go of processes that came and went while a recording goes on, with their owners and stacks:
 * memory follows the processes that live. What a living space inherited stays, up to the first of
 * its ancestors. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/replay.h"

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

static int sweep_origins(struct replay *p)
{
	u32 i, n = 0;

	for (i = 1; i < p->nr_origins; i++) {
		struct origin *o = &p->origins[i];

		if (o->unused || !is_gone(p, o->space))
			continue;
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
	struct store rest = {0};
	size_t i;
	int err = 0;

	for (i = 0; i < p->named.nr && !is_gone(p, store_rec(&p->named, i)->space); i++)
		;
	if (i == p->named.nr)
		return 0;
	for (i = 0; i < p->named.nr && !err; i++)
		if (!is_gone(p, store_rec(&p->named, i)->space))
			err = store_keep(&rest, store_rec(&p->named, i));
	if (err) {
		store_release(&rest);
		return err;
	}
	store_release(&p->named);
	p->named = rest;
	names_release(p);
	return 0;
}

int sweep(struct replay *p)
{
	int err;

	if (!mark_gone(p))
		return 0;
	err = sweep_origins(p);
	return err ? err : sweep_names(p);
}
