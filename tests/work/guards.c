// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that look odd in a page table: PROT_NONE after use (resident), guard
 * markers and the zero page (not resident).
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

#define PAGES 331
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static NOINLINE void map_hidden(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	if (mprotect(p + 10 * page, 101 * page, PROT_NONE))
		die("mprotect");
}

/* Returns the number of guard pages: 0 before Linux 6.13. */
static NOINLINE size_t map_markers(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	return madvise(p + 7 * page, 53 * page, MADV_GUARD_INSTALL) ? 0 : 53;
}

static NOINLINE void read_zeros(void)
{
	char *p = map_anon(PAGES * page);

	for (size_t i = 0; i < PAGES; i++)
		(void)*(volatile char *)(p + i * page);
}

int main(void)
{
	start();

	map_hidden();
	size_t guards = map_markers();
	read_zeros();

	say("map_hidden", PAGES, PAGES, PAGES);
	say("map_markers", PAGES, PAGES - guards, PAGES);
	say("read_zeros", PAGES, 0, PAGES);
	printf("done\n");
	await_line();
	return 0;
}
