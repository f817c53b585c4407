/* SPDX-License-Identifier: GPL-2.0-only
 * When code of files was mapped in a space: what lay there before is called otherwise. */
#ifndef MP_CAPTURE_CHANGES_H
#define MP_CAPTURE_CHANGES_H

#include "bpf/shared/event.h"

struct changes {
	struct change {
		u64 start, end, seq;
		int seen; /* a picture has said what it is */
	} * at;
	u32 nr;
};

/* A MAP: noted when it is of a file's code. 0 or -ENOMEM. */
int changes_add(struct changes *c, const struct mp_hdr *rec);
/* The latest of what lies at addr, NULL: none was seen. */
const struct change *changes_last(const struct changes *c, u64 addr);
/* A picture shows code there. */
void changes_see(struct changes *c, u64 seq, const struct mp_ev_vma *v);
void changes_release(struct changes *c);

#endif
