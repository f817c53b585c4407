/* SPDX-License-Identifier: GPL-2.0-only */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/user.h"

int user_find(const char *verb, const char *name, struct spawn_user *ret_user)
{
	const char *sudo = getenv("SUDO_UID");
	const struct passwd *pw;
	char *end;
	long uid;

	*ret_user = (struct spawn_user){0};
	if (name) {
		pw = getpwnam(name);
		if (!pw)
			return fail(verb, "--user %s: no such user: check with getent passwd",
				    name);
		if (geteuid() != 0 && pw->pw_uid != geteuid())
			return fail(verb, "--user %s: only root may run CMD as another user", name);
	} else {
		if (geteuid() != 0 || !sudo || !isdigit((unsigned char)*sudo))
			return 0;
		errno = 0;
		uid = strtol(sudo, &end, 10);
		if (*end || errno || uid <= 0 || uid > 0xfffffffel)
			return 0;
		pw = getpwuid((uid_t)uid);
		if (!pw)
			return fail(verb,
				    "SUDO_UID=%s: no such user, so CMD would run as root: name one "
				    "with --user",
				    sudo);
	}
	if (geteuid() != 0)
		return 0; /* it is this one already */
	ret_user->name = pw->pw_name;
	ret_user->home = pw->pw_dir;
	ret_user->shell = pw->pw_shell;
	ret_user->uid = pw->pw_uid;
	ret_user->gid = pw->pw_gid;
	return 0;
}
