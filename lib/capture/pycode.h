/* SPDX-License-Identifier: GPL-2.0-only
 * Names of Python frames: what the ring says of code objects becomes a SYMBOL for each place in
 * them that a stack has. */
#ifndef MP_CAPTURE_PYCODE_H
#define MP_CAPTURE_PYCODE_H

#include "lib/trace/trace.h"

struct pycode;

/* read: copies memory of a space; 0 when all of it was there. */
int pycode_new(struct trace_writer *w,
	       int (*read)(void *ctx, u32 space, u64 addr, void *to, size_t len), void *ctx,
	       struct pycode **ret_p);
/* A STACK or MP_RING_CODE; others are passed over. 0 or -errno. */
int pycode_feed(struct pycode *p, const struct mp_hdr *rec);
void pycode_free(struct pycode **p);

/* The line of an instruction (in units of two bytes), by a code object's table of locations, of
 * which len bytes are here; 0: it has none, or the table does not say. */
u32 pycode_line(const u8 *table, u32 len, u32 firstlineno, u32 unit);

#endif
