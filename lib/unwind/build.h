/* SPDX-License-Identifier: GPL-2.0-only
 * A table while it is built: file.c says where the code and its call frame information are, table.c
 * puts the rows together. Internal to lib/unwind. */
#ifndef MP_UNWIND_BUILD_H
#define MP_UNWIND_BUILD_H

#include "lib/unwind/cfi.h"
#include "lib/unwind/table.h"

#define MAX_SEGMENTS 64

struct piece {
	u64 start, end; /* in the file */
	u32 rule;
};

struct builder {
	struct segment {
		u64 vaddr, offset, len;
	} segments[MAX_SEGMENTS]; /* executable; file offsets below 4 GiB */
	size_t nr_segments;
	struct mp_rule *rules;
	size_t nr_rules, cap_rules;
	u32 *seen; /* hash of rules: number + 1, 0 free */
	size_t cap_seen;
	struct pieces {
		struct piece *p;
		size_t nr, cap;
	} pieces[2]; /* of .eh_frame, of .debug_frame */
	int source;
	int is_go; /* keeps frame pointers, also from stack to stack */
};

int builder_start(struct builder *b);
int builder_read(struct builder *b, const struct cfi_section *sec);
int builder_finish(struct builder *b, struct unwind_table *ret);
void builder_release(struct builder *b);

#endif
