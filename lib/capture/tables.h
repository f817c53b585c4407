/* SPDX-License-Identifier: GPL-2.0-only
 * Unwind tables of files, built by a child that has nothing to lose (jail.h) while the recorder
 * goes on. What the child says is taken as data of unknown origin. */
#ifndef MP_CAPTURE_TABLES_H
#define MP_CAPTURE_TABLES_H

#include "lib/unwind/table.h"

struct tables;

/* The table of file number i, which stays the caller's; NULL: it has none that we can read.
 * Non-zero stops. */
typedef int (*table_fn)(void *ctx, size_t i, const struct unwind_table *t);

/* Begins to build those of fds, which are borrowed until it is done. 0 or -errno. */
int tables_start(const int *fds, size_t nr, struct tables **ret_t);
/* Calls fn for each that is there, without waiting for more. 1: there are more, 0: that was the
 * last, or -errno. A file that brings the child down or to a standstill has none. */
int tables_read(struct tables *t, table_fn fn, void *ctx);
/* Readable when there may be something to read. */
int tables_fd(const struct tables *t);
void tables_free(struct tables **t);

#endif
