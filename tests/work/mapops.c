// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mixed map operations: munmap of head, middle and tail, mremap that grows,
 * moves and shrinks, brk up and down, an mprotect split, MADV_DONTNEED.
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

#define PAGES 401

static inline __attribute__((always_inline)) char *remap(char *p, size_t from, size_t to, int flags,
							 char *at)
{
	long q = call(SYS_mremap, (long)p, (long)(from * page), (long)(to * page), flags, (long)at,
		      0);

	if (q == -1)
		die("mremap");
	return (char *)q;
}

static NOINLINE void cut_region(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	if (munmap(p, 31 * page) || munmap(p + 200 * page, 17 * page) ||
	    munmap(p + (PAGES - 43) * page, 43 * page))
		die("munmap");
}

static NOINLINE void grow_region(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	p = remap(p, PAGES, 2 * PAGES, MREMAP_MAYMOVE, NULL);
	touch(p + PAGES * page, 101);
}

/* Moved over a reservation, which ends there. */
static NOINLINE void move_region(void)
{
	char *at = map_at(NULL, PAGES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *p = map_anon(PAGES * page);

	touch(p, 307);
	remap(p, PAGES, PAGES, MREMAP_MAYMOVE | MREMAP_FIXED, at);
}

static NOINLINE void shrink_region(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	remap(p, PAGES, 149, 0, NULL);
}

/* Nothing between the two calls may allocate. */
static NOINLINE void move_brk(void)
{
	long old = call(SYS_brk, 0, 0, 0, 0, 0, 0);
	long up = old + (long)(PAGES * page);

	if (call(SYS_brk, up, 0, 0, 0, 0, 0) != up)
		die("brk");
	/* The break need not be page-aligned: touch only whole new pages. */
	touch((char *)((old + (long)page - 1) & -(long)page), PAGES - 1);
	if (call(SYS_brk, old + (long)(150 * page), 0, 0, 0, 0, 0) == -1)
		die("brk");
}

static NOINLINE void split_region(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, 211);
	if (mprotect(p + 100 * page, 150 * page, PROT_READ))
		die("mprotect");
}

static NOINLINE void drop_region(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, PAGES);
	if (madvise(p + 11 * page, 173 * page, MADV_DONTNEED))
		die("madvise");
}

int main(void)
{
	start();

	cut_region();
	grow_region();
	move_region();
	shrink_region();
	move_brk();
	split_region();
	drop_region();

	say("cut_region", PAGES - 91, PAGES - 91, PAGES);
	say("grow_region", 2 * PAGES, PAGES + 101, PAGES + 101);
	say("move_region", PAGES, 307, 307);
	say("shrink_region", 149, 149, PAGES);
	say("move_brk", 150, 150, PAGES - 1);
	say("split_region", PAGES, 211, 211);
	say("drop_region", PAGES, PAGES - 173, PAGES);
	printf("done\n");
	await_line();
	return 0;
}
