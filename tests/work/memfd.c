// SPDX-License-Identifier: GPL-2.0-only
/*
 * One memfd mapped twice, the second mapping partly touched; with swap on, the
 * pages that only the first one maps are paged out.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

#define PAGES 1013
#define NAME  "memprov-work-memfd"

static NOINLINE char *map_full(int fd)
{
	char *p = map_at(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	touch(p, PAGES);
	return p;
}

static NOINLINE size_t map_part(int fd)
{
	char *p = map_at(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	size_t n = 0;

	/* Writes: a read would map the pages around it too. */
	for (size_t i = 0; i < PAGES; i += 3, n++)
		touch(p + i * page, 1);
	return n;
}

/* A page that two mappings hold stays: MADV_PAGEOUT skips it. */
static NOINLINE size_t pageout(char *p, size_t want)
{
	size_t gone = 0;

	for (int round = 0; round < 50 && gone < want; round++) {
		madvise(p, PAGES * page, MADV_PAGEOUT);
		gone = 0;
		for (size_t i = 0; i < PAGES; i++)
			gone += !(pagemap(p + i * page) >> 63);
	}
	return gone;
}

int main(void)
{
	start();

	int fd = memfd_create(NAME, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)(PAGES * page)))
		die("memfd_create");
	char *p = map_full(fd);
	size_t part = map_part(fd);
	size_t gone = swap_is_on() ? pageout(p, PAGES - part) : 0;

	/* Both mappings span the object: what is swapped of it counts under each, as Rss would. */
	printf("{\"owner\":\"memfd\",\"object\":\"" NAME "\",\"reserved\":%zu,"
	       "\"resident\":%zu,\"swapped\":%zu,\"touched\":%zu}\n",
	       2 * PAGES * page, (PAGES + part - gone) * page, 2 * gone * page,
	       (PAGES + part) * page);
	printf("done\n");
	await_line();
	return 0;
}
