/* SPDX-License-Identifier: GPL-2.0-only
 * The address spaces that live, by the records read of them: how many processes are in each, and
 * which of its losses are in the trace already. */
#ifndef MP_CAPTURE_SPACES_H
#define MP_CAPTURE_SPACES_H

#include "bpf/shared/event.h"

struct spaces {
	void *tree; /* tsearch(3) */
};

struct space_told {
	u32 id, members;
	u64 lost[MP_CLASS_MAX];
};

/* Made on first use. NULL: no memory. */
struct space_told *spaces_get(struct spaces *all, u32 id);
/* 1: the last member has left rec's space, 0: not, or -ENOMEM. */
int spaces_feed(struct spaces *all, const struct mp_hdr *rec);
void spaces_forget(struct spaces *all, u32 id);
void spaces_release(struct spaces *all);

#endif
