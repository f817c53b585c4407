/* SPDX-License-Identifier: GPL-2.0-only
 * The columns that somebody chose for top, from one time to the next: names with commas, in
 * memprov/top-columns below XDG_CONFIG_HOME, else ~/.config. */
#ifndef MP_CMD_TOP_REMEMBER_H
#define MP_CMD_TOP_REMEMBER_H

#include "lib/join/join.h"

/* Columns of a list, -1 behind them, into ret (COST_MAX + 1); NULL, or the first name that is no
 * column, good until the next call. */
const char *columns_of(const char *list, int *ret);
/* The list that is remembered; "" none. */
void remembered(char *buf, size_t len);
/* "" forgets. 0 or -errno. */
int remember(const char *list);

#endif
