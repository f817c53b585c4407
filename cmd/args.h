/* SPDX-License-Identifier: GPL-2.0-only
 * Arguments that several verbs read alike. */
#ifndef MP_CMD_ARGS_H
#define MP_CMD_ARGS_H

#include "lib/join/join.h"

/* A whole number. 0, or -1 for anything else. */
int parse_count(const char *text, unsigned long *ret);
/* join_file(); "-" is the standard input, also when that is a pipe. */
int input_join(const char *path, enum owner_mode owner, struct report **ret_r);

#endif
