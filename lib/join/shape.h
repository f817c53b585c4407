/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to lib/join: the class of a mapping that was there before its call could be seen. */
#ifndef MP_JOIN_SHAPE_H
#define MP_JOIN_SHAPE_H

#include "lib/join/replay.h"

/* A walk begins at pending record begin. 0 or -ENOMEM. */
int shape_walk(struct replay *p, size_t begin);
/* The pending records are others now. */
void shape_forget(struct replay *p);
/* Class of a VMA of the walk at hand; NULL: the table has none for it. -ENOMEM in p->err. */
const char *shape_of(struct replay *p, u32 space, const struct mp_ev_vma *v);
int shape_is_bss(const char *name); /* mapped by exec itself: no call asked for it */
/* What made it so, in words; NULL for a name that is no class. */
const char *shape_evidence(const char *name);
void shape_free(struct replay *p);

#endif
