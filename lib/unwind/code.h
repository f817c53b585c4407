/* SPDX-License-Identifier: GPL-2.0-only
 * Rules for code that no call frame information speaks of, as musl's C library is built: from what
 * its instructions do to the stack pointer. Internal to lib/unwind. */
#ifndef MP_UNWIND_CODE_H
#define MP_UNWIND_CODE_H

#include "lib/unwind/build.h"

struct code;

/* An executable segment; text: its bytes; is_fixed: it is always at the address it was linked for.
 * -ENOMEM. */
int code_open(struct builder *b, const struct segment *s, const u8 *text, int is_fixed,
	      struct code **ret_c);
void code_close(struct code **c);
/* A function begins at this address, or the program does (nobody called that). */
int code_add_function(struct code *c, u64 vaddr, int is_entry);
/* Follows them, and those that they or the code with tables call; the rows go to the builder. */
int code_read(struct code *c);

#endif
