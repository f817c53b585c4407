/* SPDX-License-Identifier: GPL-2.0-only
 * --user and sudo: whom CMD runs as. */
#ifndef MP_CMD_USER_H
#define MP_CMD_USER_H

#include "lib/capture/spawn.h"

/* name: of --user, or NULL: under sudo its caller, else nobody else. 0, or an exit status after a
 * message. What *ret_user points at lives until the next call. */
int user_find(const char *verb, const char *name, struct spawn_user *ret_user);

#endif
