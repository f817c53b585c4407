/* SPDX-License-Identifier: GPL-2.0-only
 * Names for addresses, read by a child that has nothing to lose (jail.h). What the child says is
 * taken as data of unknown origin: module and offset never come from it. */
#ifndef MP_CAPTURE_NAMER_H
#define MP_CAPTURE_NAMER_H

#include <stddef.h>
#include "lib/sym/sym.h"

#define NAMER_MAX_INLINE 32

/* n frames of spot number i, innermost first, and enum mp_frame; given_up: its file is not read any
 * more. Stops when it returns non-zero. */
typedef int (*name_fn)(void *ctx, size_t i, const struct sym_frame *frames, int n, u32 frame,
		       int given_up);

/* Calls fn once for each spot, in order. fds: all that the files refer to. A file that brings the
 * child down or to a standstill is not read any more, and its spots keep module and offset. 0 or
 * -errno. */
int name_all(struct sym_files *files, const struct sym_spot *spots, size_t nr, const int *fds,
	     size_t nr_fds, name_fn fn, void *ctx);

#endif
