/* SPDX-License-Identifier: GPL-2.0-only
 * Call frame information (.eh_frame, .debug_frame) of x86-64: all its rows, in the order of their
 * addresses. The input is anybody's: what cannot be read is left out. */
#ifndef MP_UNWIND_CFI_H
#define MP_UNWIND_CFI_H

#include <stddef.h>
#include "bpf/shared/unwind.h"

struct cfi_section {
	const u8 *data;
	size_t len;
	u64 vaddr; /* of data; counts in .eh_frame only */
	int is_eh; /* .eh_frame, else .debug_frame */
	int ends_at_mark; /* len is a guess */
};

/* From pc to end the rule counts. Non-zero stops. */
typedef int (*cfi_row_fn)(void *ctx, u64 pc, u64 end, const struct mp_rule *rule);

/* Functions come sorted by address; where two overlap, the rest of the later one. What fn returned,
 * or -ENOMEM. */
int cfi_read(const struct cfi_section *sec, cfi_row_fn fn, void *ctx);

#endif
