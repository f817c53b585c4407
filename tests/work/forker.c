// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fork with copy on write on both sides; the child maps memory of its own.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define PAGES	    1009
#define CHILD_PAGES 211

static NOINLINE char *parent_map(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	return p;
}

static NOINLINE void child_map(void)
{
	touch(map_anon(CHILD_PAGES * page), CHILD_PAGES);
}

static void say_pid(const char *owner, size_t reserved, size_t resident, size_t touched)
{
	printf("{\"owner\":\"%s\",\"pid\":%d,\"reserved\":%zu,\"resident\":%zu,\"touched\":%zu}\n",
	       owner, (int)getpid(), reserved * page, resident * page, touched * page);
}

static void child(char *p, int up)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	touch(p, 307);
	child_map();
	say_pid("parent_map", PAGES, PAGES, 307);
	say_pid("child_map", CHILD_PAGES, CHILD_PAGES, CHILD_PAGES);
	fflush(stdout);
	if (write(up, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int main(void)
{
	int up[2];
	char c;

	start();

	char *p = parent_map();

	if (pipe(up))
		die("pipe");
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0)
		child(p, up[1]);
	if (read(up[0], &c, 1) != 1)
		die("child");
	touch(p + 500 * page, 401);
	say_pid("parent_map", PAGES, PAGES, PAGES);
	printf("done\n");
	await_line();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
