// SPDX-License-Identifier: GPL-2.0-only
/*
 * More children than any table has room for, one after the other; the one born last stays, and maps
 * and touches 16 MiB.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>

#include "work.h"

#define CHILDREN 5000
#define PAGES	 4096

static NOINLINE void late_map(void)
{
	touch(map_anon(PAGES * page), PAGES);
}

static void short_life(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void stay(int up)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	late_map();
	printf("{\"owner\":\"late_map\",\"pid\":%d,\"reserved\":%zu,\"resident\":%zu,\"touched\":%"
	       "zu}\n",
	       (int)getpid(), PAGES * page, PAGES * page, PAGES * page);
	fflush(stdout);
	if (write(up, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int main(void)
{
	int up[2], i;
	pid_t pid;
	char c;

	start();
	for (i = 0; i < CHILDREN; i++)
		short_life();
	if (pipe(up))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		stay(up[1]);
	if (read(up[0], &c, 1) != 1)
		die("child");
	printf("done\n");
	await_line();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
