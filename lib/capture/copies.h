/* SPDX-License-Identifier: GPL-2.0-only
 * Stacks that came with a copy because the unwinder in BPF did not get to their end: unwound once
 * the files are known, by a child that has nothing to lose (jail.h). */
#ifndef MP_CAPTURE_COPIES_H
#define MP_CAPTURE_COPIES_H

#include <stddef.h>
#include "bpf/shared/event.h"
#include "lib/sym/sym.h"

struct copies {
	struct copy {
		struct mp_hdr *rec; /* a STACK with registers and stack */
		const struct sym_space *space;
	} * items;
	size_t nr, cap;
	u64 left_out; /* there were too many */
};

/* Has this STACK a copy? */
int copy_is(const struct mp_ev_stack *ev);
/* Keeps a copy of the record. */
int copies_add(struct copies *c, const struct mp_hdr *rec);
/* Calls fn for each whose space is set, with what was found; one that brought the child down is
 * left as it is. fds: all that the spaces refer to. Stops when fn returns non-zero. 0 or -errno. */
int copies_unwind(struct copies *c, const int *fds, size_t nr_fds,
		  int (*fn)(void *ctx, const struct mp_hdr *rec, const u64 *pc, u32 n, u32 end),
		  void *ctx);
void copies_clear(struct copies *c);

#endif
