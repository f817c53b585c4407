// SPDX-License-Identifier: GPL-2.0-only
/*
 * brief N: N children, one after the other, each of which allocates and ends; then one by vfork
 * that allocates in its parent's memory. Prints "ready PID", waits, works, prints how many bytes of
 * the parent live by the function that allocated them, and "done".
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include "work.h"

static char stack[65536];

static NOINLINE void in_brief_child(void)
{
	int i;

	for (i = 0; i < 5; i++)
		memset(malloc(1001), 1, 1001);
}

static NOINLINE void in_shared_memory(void)
{
	int i;

	for (i = 0; i < 7; i++)
		memset(malloc(1003), 1, 1003);
}

static int shared(void *arg)
{
	in_shared_memory();
	_exit(arg != NULL);
}

static void await_child(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("child");
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, i;
	pid_t pid;

	start();
	for (i = 0; i < n; i++) {
		pid = fork();
		if (!pid) {
			in_brief_child();
			_exit(0);
		}
		await_child(pid);
	}
	await_child(clone(shared, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	printf("{\"pid\":%d,\"site\":\"in_shared_memory\",\"reserved\":%d,\"live\":%d}\n",
	       (int)getpid(), 7 * 1003, 7 * 1003);
	printf("done\n");
	await_line();
	return 0;
}
