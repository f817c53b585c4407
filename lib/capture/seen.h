/* SPDX-License-Identifier: GPL-2.0-only
 * A set of 64-bit keys with a note for each, and the space they are forgotten with. */
#ifndef MP_CAPTURE_SEEN_H
#define MP_CAPTURE_SEEN_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct seen {
	u64 key; /* 0: empty */
	u32 note; /* 0: new */
	u32 space;
};

struct seen_set {
	struct seen *slots; /* open addressing */
	size_t nr, cap;
};

u64 seen_mix(u64 h, u64 v);
/* Never 0. */
u64 seen_key(u32 kind, u32 space, u64 v);
/* NULL: it is not there. */
struct seen *seen_find(const struct seen_set *s, u64 key);
/* Put there where it was not. NULL: no memory. */
struct seen *seen_get(struct seen_set *s, u32 space, u64 key);
/* Forgets what is of a space that fn does not want. 0 or -ENOMEM. */
int seen_keep(struct seen_set *s, int (*fn)(void *ctx, u32 space), void *ctx);
void seen_release(struct seen_set *s);

#endif
