/* SPDX-License-Identifier: GPL-2.0-only
 * A join that goes on: records are fed as they come, a step applies them in order, and after each
 * step there is a report. A trace file is one step. Holds the ledger, the owners, their stacks and
 * names, and the records of the step being gathered; never the ones that were applied. */
#ifndef MP_JOIN_LIVE_H
#define MP_JOIN_LIVE_H

#include "lib/join/join.h"

struct replay;

/* text gives the string of an id; it must outlive the replay and its reports. */
int replay_new(enum owner_mode owner, const char *(*text)(const void *ctx, u32 id), const void *ctx,
	       struct replay **ret_p);
/* Takes a copy of rec. */
int replay_feed(struct replay *p, const struct mp_hdr *rec);
/* Applies every record numbered up to seq; later ones wait. The last picture among them gives the
 * stocks, without one they stay. A mapping event that arrives only after its number was passed
 * makes its space inferred. */
int replay_step(struct replay *p, u64 seq);
/* What is known now. Free with join_free(). */
int replay_report(struct replay *p, struct report **ret_r);
void replay_free(struct replay **p);

#endif
