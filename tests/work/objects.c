// SPDX-License-Identifier: GPL-2.0-only
/*
 * One object, most of it in swap, mapped many times: each mapping has the swapped pages once more,
 * as smaps counts. A walk of so many is one of several passes, which end between mappings.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include "work.h"

#define PAGES	 61
#define MAPPINGS 2003
#define NAME	 "memprov-work-objects"

static size_t in_swap(const char *p)
{
	unsigned char there[PAGES];
	size_t gone = 0;

	/* Of a shared object mincore says what is in memory, mapped or not. */
	if (call(SYS_mincore, (long)p, PAGES * (long)page, (long)there, 0, 0, 0))
		die("mincore");
	for (size_t i = 0; i < PAGES; i++)
		gone += !(there[i] & 1);
	return gone;
}

int main(void)
{
	size_t gone = 0;

	start();

	int fd = memfd_create(NAME, 0);

	if (fd < 0 || ftruncate(fd, (off_t)(PAGES * page)))
		die("memfd_create");
	char *p = map_at(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);

	touch(p, PAGES);
	for (int round = 0; round < 50 && gone < PAGES; round++) {
		madvise(p, PAGES * page, MADV_PAGEOUT);
		gone = in_swap(p);
	}
	for (int i = 1; i < MAPPINGS; i++)
		map_at(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	/* One page of each: there is a table to read. The first brings it back, and it alone. */
	for (int i = 0; i < MAPPINGS; i++)
		*(volatile char *)(p - (size_t)i * PAGES * page) = 1;
	gone = in_swap(p);
	printf("{\"owner\":\"memfd\",\"object\":\"" NAME "\",\"reserved\":%zu,\"resident\":%zu,"
	       "\"swapped\":%zu,\"touched\":%zu}\n",
	       MAPPINGS * PAGES * page, MAPPINGS * page, MAPPINGS * gone * page,
	       (MAPPINGS - 1 + PAGES) * page);
	printf("done\n");
	await_line();
	return 0;
}
