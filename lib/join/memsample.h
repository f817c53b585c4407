/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to lib/join: imported samples of memory accesses, and what they estimate. */
#ifndef MP_JOIN_MEMSAMPLE_H
#define MP_JOIN_MEMSAMPLE_H

#include "lib/join/replay.h"

/* MEMSAMPLE and MEMSAMPLES, before anything is applied. */
void memsample_note(struct replay *p, const struct mp_hdr *rec);
/* One more, at the end: its owner is who has the address then. */
int memsample_apply(struct replay *p, const struct mp_hdr *rec);
/* Intervals of a row, and of the totals; whether the rows may be ranked. */
void memsample_bound(struct replay *p, const struct origin *o, struct cost *costs);
void memsample_totals(struct replay *p, struct report *r);

#endif
