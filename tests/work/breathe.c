// SPDX-License-Identifier: GPL-2.0-only
/*
 * A heap that grows and shrinks all the time: the kernel lists a mapping that
 * grows meanwhile more than once. Prints "ready PID", waits for a line, breathes
 * for three seconds and says the most it ever held.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

#define STEP  17
#define STEPS 401

static NOINLINE void breathe(char *base)
{
	for (size_t i = 1; i <= STEPS; i++) {
		if (call(SYS_brk, (long)(base + i * STEP * page), 0, 0, 0, 0, 0) == -1)
			die("brk");
		touch(base + (i - 1) * STEP * page, STEP);
	}
	if (call(SYS_brk, (long)base, 0, 0, 0, 0, 0) == -1)
		die("brk");
}

int main(void)
{
	time_t end;
	char *base;

	start();
	base = (char *)call(SYS_brk, 0, 0, 0, 0, 0, 0);
	base = (char *)(((size_t)base + page - 1) & ~(page - 1));
	for (end = time(NULL) + 3; time(NULL) < end;)
		breathe(base);
	printf("{\"owner\":\"breathe\",\"peak\":%zu}\n", STEP * STEPS * page);
	printf("done\n");
	await_line();
	return 0;
}
