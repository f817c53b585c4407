/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include "lib/capture/spaces.h"

static int by_id(const void *a, const void *b)
{
	const struct space_told *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

struct space_told *spaces_get(struct spaces *all, u32 id)
{
	struct space_told key = {.id = id}, *s, **at = tfind(&key, &all->tree, by_id);

	if (at)
		return *at;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->id = id;
	if (tsearch(s, &all->tree, by_id))
		return s;
	free(s);
	return NULL;
}

int spaces_feed(struct spaces *all, const struct mp_hdr *rec)
{
	struct space_told *s;

	if (rec->type != MP_EV_SPACE && rec->type != MP_EV_SPACE_END)
		return 0;
	s = spaces_get(all, rec->space);
	if (!s)
		return -ENOMEM;
	if (rec->type == MP_EV_SPACE) {
		s->members++;
		return 0;
	}
	if (s->members)
		s->members--;
	return !s->members;
}

void spaces_forget(struct spaces *all, u32 id)
{
	struct space_told key = {.id = id}, **at = tfind(&key, &all->tree, by_id), *s;

	if (!at)
		return;
	s = *at;
	tdelete(s, &all->tree, by_id);
	free(s);
}

void spaces_release(struct spaces *all)
{
	tdestroy(all->tree, free);
	all->tree = NULL;
}
