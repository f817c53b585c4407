/* SPDX-License-Identifier: GPL-2.0-only
 * The rows of features that say how it can be known which memory is used. */
#ifndef MP_CMD_TOUCH_H
#define MP_CMD_TOUCH_H

#include "lib/out/features.h"

#define TOUCH_ROWS 6

/* walk: can the page tables be read; fault: the status of the row of faults. The texts live as long
 * as the program. */
void touch_features(int walk, const char *fault, struct feature ret[TOUCH_ROWS]);

#endif
