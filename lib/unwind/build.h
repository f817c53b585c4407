/* SPDX-License-Identifier: GPL-2.0-only
 * A table while it is built: file.c says where the code and its call frame information are, table.c
 * puts the rows together. Internal to lib/unwind. */
#ifndef MP_UNWIND_BUILD_H
#define MP_UNWIND_BUILD_H

#include "lib/unwind/cfi.h"
#include "lib/unwind/table.h"

#define MAX_SEGMENTS 64

/* The earlier one counts. */
enum source { FROM_EH_FRAME, FROM_DEBUG_FRAME, FROM_CODE, SOURCES };

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
	} pieces[SOURCES];
	enum source source;
	int is_go; /* keeps frame pointers, also from stack to stack */
};

int builder_start(struct builder *b);
int builder_read(struct builder *b, const struct cfi_section *sec);
/* Bytes between the two of which .eh_frame speaks. */
u64 builder_covered(const struct builder *b, u64 start, u64 end);
/* Does either table speak of this offset? */
int builder_covers(const struct builder *b, u64 offset);
/* A row that no table has; they come sorted. */
int builder_put(struct builder *b, u64 offset, u64 end, const struct mp_rule *rule);
int builder_finish(struct builder *b, struct unwind_table *ret);
void builder_release(struct builder *b);

#endif
