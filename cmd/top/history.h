/* SPDX-License-Identifier: GPL-2.0-only
 * What rows had in one column in the latest pictures. */
#ifndef MP_CMD_TOP_HISTORY_H
#define MP_CMD_TOP_HISTORY_H

#include "lib/join/join.h"

#define HISTORY_LEN 16

struct history;

struct past {
	s64 value[HISTORY_LEN]; /* oldest first */
	unsigned int n;
};

int history_new(struct history **ret_h);
void history_free(struct history **h);
/* One more value of each row of r; forgets all when it is another column or grouping. */
int history_add(struct history *h, const struct report *r, int column, const char *group);
/* Of a row; n is 0 when it is not known. */
void history_get(struct history *h, const struct row *row, struct past *ret);
/* The latest values as one character each, from nothing to the largest. */
void history_sparkline(const struct past *p, int utf8, unsigned int width, char *buf, size_t len);

#endif
