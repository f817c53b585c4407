/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "lib/capture/changes.h"

int changes_add(struct changes *c, const struct mp_hdr *rec)
{
	const struct mp_ev_map *m = (const struct mp_ev_map *)(rec + 1);
	struct change *more;

	if (m->kind != MP_MAP_MMAP || !(m->prot & PROT_EXEC) || m->flags & MAP_ANONYMOUS)
		return 0;
	more = realloc(c->at, (c->nr + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	c->at = more;
	more[c->nr++] = (struct change){.start = m->start, .end = m->end, .seq = rec->seq};
	return 0;
}

const struct change *changes_last(const struct changes *c, u64 addr)
{
	const struct change *last = NULL;
	u32 i;

	for (i = 0; i < c->nr; i++)
		if (addr >= c->at[i].start && addr < c->at[i].end &&
		    (!last || c->at[i].seq > last->seq))
			last = &c->at[i];
	return last;
}

void changes_see(struct changes *c, u64 seq, const struct mp_ev_vma *v)
{
	u32 i;

	for (i = 0; i < c->nr; i++)
		c->at[i].seen |=
			c->at[i].seq <= seq && c->at[i].start < v->end && v->start < c->at[i].end;
}

void changes_release(struct changes *c)
{
	free(c->at);
	memset(c, 0, sizeof(*c));
}
