// SPDX-License-Identifier: GPL-2.0-only
/*
 * mremap that leaves the old range (DONTUNMAP), and a mapping
 * that grows downwards by itself: the growth belongs to the call that made it.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <unistd.h>

#include "work.h"

#define PAGES 256
#define DOWN  16
#define GROWN 99

static NOINLINE void left_region(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	if (call(SYS_mremap, (long)p, (long)(PAGES / 2 * page), (long)(PAGES / 2 * page),
		 MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0, 0) == -1)
		die("mremap");
	touch(p, 7);
}

static NOINLINE void down_region(void)
{
	char *p = map_at((char *)0x300000000000, DOWN * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1);

	for (long i = DOWN - 1; i >= -GROWN; i--)
		*(volatile char *)(p + i * (long)page) = 1;
}

int main(void)
{
	start();

	left_region();
	down_region();

	say("left_region", PAGES + PAGES / 2, PAGES + 7, PAGES + 7);
	say("down_region", DOWN + GROWN, DOWN + GROWN, DOWN + GROWN);
	printf("done\n");
	await_line();
	return 0;
}
