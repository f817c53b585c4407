/* SPDX-License-Identifier: GPL-2.0-only
 * CMD: a child that waits to be followed before it becomes the command. */
#ifndef MP_CAPTURE_SPAWN_H
#define MP_CAPTURE_SPAWN_H

#include <sys/types.h>

/* Whom CMD runs as. */
struct spawn_user {
	const char *name; /* NULL: as this process */
	const char *home, *shell;
	uid_t uid;
	gid_t gid;
};

/* This process becomes user, for good. 0, or -1 and errno. */
int spawn_become(const struct spawn_user *user);
struct spawn_command {
	char **argv;
	const struct spawn_user *user;
	char *const
		*env; /* "NAME=VALUE", a NULL behind the last; beside what there is. NULL: none */
};

/* The child waits for a byte on *ret_go; the errno of what keeps it from becoming argv comes back
 * as a byte on *ret_bad, which closes empty when it has become it. Its pid, or -errno. */
pid_t spawn(const struct spawn_command *cmd, int *ret_go, int *ret_bad);

#endif
