/* SPDX-License-Identifier: GPL-2.0-only
 * Which files a command will map, as its own loader says without running it. */
#ifndef MP_CAPTURE_LIBS_H
#define MP_CAPTURE_LIBS_H

#include "lib/capture/spawn.h"

/* Calls fn for the command's file, found as execvp(3) does, its loader, which is asked as user, and
 * each library; stops when fn returns non-zero and returns that. A command that cannot be found has
 * none. */
int libs_of(const char *command, const struct spawn_user *user,
	    int (*fn)(void *ctx, const char *path), void *ctx);

#endif
