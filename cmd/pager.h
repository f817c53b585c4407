/* SPDX-License-Identifier: GPL-2.0-only
 * Where a text result goes: on a terminal through $PAGER, when that is set. */
#ifndef MP_CMD_PAGER_H
#define MP_CMD_PAGER_H

#include <stdio.h>

/* stdout, or the pager's input. */
FILE *pager_open(void);
/* Waits for the pager; one that was left early is no error. 0 or -errno. */
int pager_close(FILE *f);

#endif
