// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child that shares the memory but not the thread group (CLONE_VM) replaces a
 * mapping of its parent: the pages belong to the child's call.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
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

#define PAGES 256

static char *base;

static NOINLINE void old_owner(void)
{
	base = map_anon(PAGES * page);
	touch(base, PAGES);
}

static NOINLINE void new_owner(void)
{
	map_at(base, PAGES * page, PROT_READ | PROT_WRITE,
	       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	touch(base, 100);
}

static int turn[2];

static int child(void *arg)
{
	(void)arg;
	if (read(turn[0], &(char){0}, 1) == 1)
		new_owner();
	_exit(0);
}

static pid_t start_child(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	if (pid < 0)
		die("clone");
	return pid;
}

/* early: the child is there before the program is watched. */
int main(int argc, char **argv)
{
	int early = argc > 1 && !strcmp(argv[1], "early");
	pid_t pid;

	if (pipe(turn))
		die("pipe");
	pid = early ? start_child() : 0;
	start();

	old_owner();
	if (!early)
		pid = start_child();
	if (write(turn[1], "", 1) != 1 || waitpid(pid, NULL, 0) != pid)
		die("the child");

	say("old_owner", 0, 0, PAGES);
	say("new_owner", PAGES, 100, 100);
	printf("done\n");
	await_line();
	return 0;
}
