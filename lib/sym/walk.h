/* SPDX-License-Identifier: GPL-2.0-only
 * The frames of a copied stack, by libdw, which knows all of DWARF's rules: the second way, for
 * what the unwinder in BPF has no table or no rule for. */
#ifndef MP_SYM_WALK_H
#define MP_SYM_WALK_H

#include "lib/sym/sym.h"

#define SYM_WALK_REGS 17 /* x86-64, by DWARF number; the last one is the program counter */

struct sym_copy {
	u64 regs[SYM_WALK_REGS];
	const u8 *stack; /* from the stack pointer up */
	u64 len;
};

struct sym_walker;

/* For stacks of a space, which must not change meanwhile. 0 or -errno. */
int sym_walker_new(const struct sym_space *s, struct sym_walker **ret_w);
void sym_walker_free(struct sym_walker **w);
/* The program counter and the return addresses above it, at most max; their number. *ret_end is
 * enum mp_stack_end. */
u32 sym_walk(struct sym_walker *w, const struct sym_copy *c, u64 *ret, u32 max, u32 *ret_end);

#endif
