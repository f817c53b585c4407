/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <unistd.h>
#include "lib/capture/spawn.h"

/* All of it, as login(1) would: left-over groups of root are root's powers. */
int spawn_become(const struct spawn_user *u)
{
	if (!u->name)
		return 0;
	if (initgroups(u->name, u->gid) || setresgid(u->gid, u->gid, u->gid) ||
	    setresuid(u->uid, u->uid, u->uid))
		return -1;
	if (setenv("USER", u->name, 1) || setenv("LOGNAME", u->name, 1) ||
	    setenv("HOME", u->home, 1) || setenv("SHELL", u->shell, 1))
		return -1;
	return 0;
}

static int set_env(char *const *env)
{
	int err = 0;

	for (; env && *env && !err; env++)
		err = putenv(*env);
	return err;
}

static _Noreturn void child(const struct spawn_command *cmd, int go, int bad)
{
	char c;

	if (read(go, &c, 1) != 1)
		_exit(125);
	if (!spawn_become(cmd->user) && !set_env(cmd->env))
		execvp(cmd->argv[0], cmd->argv);
	c = (char)errno;
	if (write(bad, &c, 1) < 0)
		_exit(125);
	_exit(c == ENOENT ? 127 : 126);
}

pid_t spawn(const struct spawn_command *cmd, int *ret_go, int *ret_bad)
{
	int go[2], bad[2], err;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	if (pipe2(bad, O_CLOEXEC)) {
		err = -errno;
		close(go[0]);
		close(go[1]);
		return err;
	}
	pid = fork();
	err = -errno;
	if (pid == 0) {
		close(go[1]);
		child(cmd, go[0], bad[1]);
	}
	close(go[0]);
	close(bad[1]);
	if (pid < 0) {
		close(go[1]);
		close(bad[0]);
		return err;
	}
	*ret_go = go[1];
	*ret_bad = bad[0];
	return pid;
}
