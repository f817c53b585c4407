/* SPDX-License-Identifier: GPL-2.0-only
 * The BPF maps that the unwinder searches (bpf/unwind.bpf.h), and how they are written while it
 * does: a table is there before a range names it, and ranges are replaced, never changed. */
#ifndef MP_CAPTURE_BANKS_H
#define MP_CAPTURE_BANKS_H

#include "lib/unwind/table.h"

struct banks;

struct bank_fds {
	int ranges, spans, banks, losses;
	u32 *generation;
};

/* Where a table lies: the fields of a range. */
struct table_at {
	u32 bank, rules, rows, nr_rows;
};

int banks_open(const struct bank_fds *fds, struct banks **ret_b);
void banks_free(struct banks **b);
/* -ENOSPC: there is no more room for tables. */
int banks_add(struct banks *b, const struct unwind_table *t, struct table_at *ret);
/* How often the code of a space has changed. */
u32 banks_code(const struct banks *b, u32 space);
/* The ranges of a space from now on, sorted, as they were when its code had changed so often. *at:
 * where they are, zero before the first time. -ENOSPC: no room for so many; the space has none
 * then. */
int banks_publish(struct banks *b, u32 space, const struct mp_range *r, size_t nr, u32 code,
		  struct mp_span *at);
void banks_withdraw(struct banks *b, u32 space, struct mp_span *at);
/* Kernel memory of the tables. */
u64 banks_bytes(const struct banks *b);

#endif
