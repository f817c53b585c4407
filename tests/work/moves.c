// SPDX-License-Identifier: GPL-2.0-only
/*
 * One mremap of several VMAs over a mapping of another owner (Linux 6.17): the source has a hole,
 * and what lies under it at the destination stays. Each page says by its content whose it is.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

static NOINLINE char *map_source(void)
{
	return map_anon(32 * page);
}

static NOINLINE char *map_under(void)
{
	return map_anon(64 * page);
}

static void fill(char *p, size_t pages, char mark)
{
	for (size_t i = 0; i < pages; i++)
		p[i * page] = mark;
}

int main(void)
{
	start();
	char *under = map_under(), *source;
	size_t moved = 0, stayed = 0;

	fill(under, 64, 9);
	source = map_source();
	fill(source, 32, 7);
	if (call(SYS_munmap, (long)(source + 20 * page), (long)(4 * page), 0, 0, 0, 0))
		die("munmap");
	call(SYS_mremap, (long)source, (long)(32 * page), (long)(32 * page),
	     MREMAP_MAYMOVE | MREMAP_FIXED, (long)under, 0);
	for (size_t i = 0; i < 64; i++) {
		unsigned char there;

		/* Kernels that move one VMA at a time have unmapped it before they refuse. */
		if (call(SYS_mincore, (long)(under + i * page), (long)page, (long)&there, 0, 0, 0))
			continue;
		moved += under[i * page] == 7;
		stayed += under[i * page] == 9;
	}
	if (moved) {
		say("map_source", moved, moved, 32);
		say("map_under", stayed, stayed, 64);
	}
	printf("done\n");
	await_line();
	return 0;
}
