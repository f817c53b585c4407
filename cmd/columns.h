/* SPDX-License-Identifier: GPL-2.0-only
 * Columns by name: the options that report and top share. */
#ifndef MP_CMD_COLUMNS_H
#define MP_CMD_COLUMNS_H

/* Number of the column to sort by, resident for NULL; -1 after a message. */
int columns_by(const char *verb, const char *name);
/* The columns to print into ret, which has room for COST_MAX + 2: those of list (names separated by
 * commas), or by and the usual ones for NULL. 0, or -1 after a message. */
int columns_pick(const char *verb, const char *list, int by, int *ret);
/* Those of which the report has evidence, all of them. */
struct report;
void columns_seen(const struct report *r, int *ret);
/* The columns of a view ("growth", ...) that are there and have evidence, into ret as above.
 * Returns the one to sort by, -1 after a message. */
int columns_view(const char *verb, const struct report *r, const char *view, int *ret);
/* A view's name by number from 0 on, NULL behind the last. */
const char *columns_view_name(int n);
/* All there are, on stdout. Returns 0. */
int columns_list(void);

#endif
