// SPDX-License-Identifier: GPL-2.0-only
/*
 * Four workers forked from one process, their stacks and code at the same addresses, each with
 * pages of its own. Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include "work.h"

#define WORKERS 4

static NOINLINE void fill_worker(size_t pages)
{
	touch(map_anon(pages * page), pages);
}

static NOINLINE void work(int number, int told)
{
	fill_worker(53u * (size_t)number);
	if (write(told, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

int main(void)
{
	pid_t workers[WORKERS];
	int pipes[2];

	start();
	if (pipe(pipes))
		die("pipe");
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (workers[i] < 0)
			die("fork");
		if (!workers[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			work(i + 1, pipes[1]);
		}
	}
	for (int i = 0; i < WORKERS; i++)
		if (read(pipes[0], &(char){0}, 1) != 1)
			die("read");
	for (int i = 0; i < WORKERS; i++)
		printf("{\"pid\":%d,\"owner\":\"fill_worker\",\"resident\":%zu}\n", workers[i],
		       53u * (size_t)(i + 1) * page);
	printf("done\n");
	await_line();
	return 0;
}
