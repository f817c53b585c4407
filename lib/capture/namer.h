/* SPDX-License-Identifier: GPL-2.0-only
 * Names for addresses, read by a child that has nothing to lose (jail.h). What the child says is
 * taken as data of unknown origin: module and offset never come from it. */
#ifndef MP_CAPTURE_NAMER_H
#define MP_CAPTURE_NAMER_H

#include <stddef.h>
#include "lib/sym/sym.h"

#define NAMER_MAX_INLINE 32

struct name_place {
	struct sym_space *space;
	u64 addr;
	u8 is_return;
};

/* n frames of place number i, innermost first, and enum mp_frame. Stops when it returns non-zero.
 */
typedef int (*name_fn)(void *ctx, size_t i, const struct sym_frame *frames, int n, u32 frame);

/* Calls fn once for each place, in order; each lies in a mapping of its space. fds: all that the
 * spaces refer to. A file that brings the child down or to a standstill is not read any more, and
 * its addresses keep module and offset: *ret_unnamed counts them. 0 or -errno. */
int name_all(const struct name_place *places, size_t nr, const int *fds, size_t nr_fds, name_fn fn,
	     void *ctx, u64 *ret_unnamed);

#endif
