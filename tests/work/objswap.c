// SPDX-License-Identifier: GPL-2.0-only
/*
 * A memfd of 2 MiB and an anonymous mapping of 1 MiB above it, both paged out where there is swap:
 * what is swapped of the one must not be taken for the other's.
 * Prints "ready PID", waits for a line, acts, prints "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define OBJECT (2ul << 20)
#define ANON   (1ul << 20)

static void write_and_page_out(char *p, size_t len)
{
	for (size_t i = 0; i < len; i += page)
		*(size_t *)(p + i) = i + 1;
	madvise(p, len, MADV_PAGEOUT);
}

int main(void)
{
	start();
	int fd = memfd_create("objswap", 0);
	char *room = map_anon(OBJECT + ANON + 3 * page);

	if (fd < 0 || ftruncate(fd, OBJECT))
		die("memfd");
	write_and_page_out(
		map_at(room + page, OBJECT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd),
		OBJECT);
	write_and_page_out(room + OBJECT + 2 * page, ANON);
	printf("done\n");
	await_line();
	return 0;
}
