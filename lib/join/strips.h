/* SPDX-License-Identifier: GPL-2.0-only
 * The address spaces of a recording as its last pictures show them: each mapping as a strip. */
#ifndef MP_JOIN_STRIPS_H
#define MP_JOIN_STRIPS_H

#include "lib/join/join.h"

#define STRIP_BINS 96u

/* What most of a part of a strip is. Touched: resident, and a fault in the recording proves access
 * to a page of it. */
enum bin_kind { BIN_NOTHING, BIN_RESIDENT, BIN_TOUCHED, BIN_HUGE, BIN_SWAPPED };

struct strip {
	u32 space;
	u32 flags; /* MP_VMA_* */
	u64 start, end;
	const char *name; /* of the trace, NULL anonymous */
	u64 resident, swapped, huge; /* bytes */
	struct {
		u64 resident, swapped, huge; /* bytes */
		u8 touched;
	} bins[STRIP_BINS];
};

struct strips {
	struct strip *all; /* by space, then address */
	size_t n;
	u64 left_out; /* mappings that are not among them: the ones with least */
	struct trace_reader *reader; /* names live here */
};

/* At most max strips of a file. 0 or -errno. */
int strips_read(const char *path, size_t max, struct strips **ret_s);
void strips_free(struct strips **s);
enum bin_kind strip_bin(const struct strip *s, u32 bin, double *ret_share);

#endif
