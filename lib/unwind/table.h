/* SPDX-License-Identifier: GPL-2.0-only
 * The unwind table of one module (bpf/shared/unwind.h), built from its file. */
#ifndef MP_UNWIND_TABLE_H
#define MP_UNWIND_TABLE_H

#include <stddef.h>
#include "bpf/shared/unwind.h"

struct unwind_table {
	u64 *cells; /* MP_RULE_CELLS * nr_rules, then nr_rows */
	u32 nr_rules, nr_rows;
};

/* Of an ELF file, or of one that lies in memory (the vdso). A file without tables gives one without
 * rows. 0, -ENOEXEC, -ENOMEM, or -E2BIG: more than MP_MAX_CELLS. */
int unwind_table_read(int fd, struct unwind_table *ret);
/* The same as if it had none: from its code alone. For comparison with what it has. */
int unwind_table_by_code(int fd, struct unwind_table *ret);
int unwind_table_of_image(const void *image, size_t len, struct unwind_table *ret);
void unwind_table_release(struct unwind_table *t);
/* Is it one that the unwinder may be given? Whoever built it may have been taken over. */
int unwind_table_good(const struct unwind_table *t);

/* The rule for code at this offset of the file; NULL: none. */
const struct mp_rule *unwind_table_find(const struct unwind_table *t, u64 offset);

#endif
