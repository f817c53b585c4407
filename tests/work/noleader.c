// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first thread of the process exits and another goes on: its memory still counts.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <unistd.h>

#include "work.h"

#define PAGES 301

static NOINLINE void late_region(void)
{
	touch(map_anon(PAGES * page), PAGES);
}

/* Until the kernel shows the first thread as a zombie. */
static void await_zombie(void)
{
	char path[64], line[512], *p = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)getpid());
	do {
		usleep(10000);
		f = fopen(path, "re");
		if (!f)
			die(path);
		p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
		fclose(f);
	} while (!p || p[2] != 'Z');
}

static void *other(void *arg)
{
	(void)arg;
	await_zombie();
	late_region();
	say("late_region", PAGES, PAGES, PAGES);
	printf("done\n");
	await_line();
	exit(0);
}

int main(void)
{
	pthread_t thread;

	start();
	if (pthread_create(&thread, NULL, other, NULL))
		die("pthread_create");
	pthread_exit(NULL);
}
