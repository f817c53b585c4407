// SPDX-License-Identifier: GPL-2.0-only
/*
 * An mremap of two mappings side by side that fails at the second, sealed one, after it has moved
 * the first (Linux 6.17). Prints "ready PID", waits for a line, acts, prints what it did as JSON
 * lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define HALF 61
#define REST 43
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static NOINLINE char *map_both(void)
{
	char *p = map_anon(2 * HALF * page);

	touch(p, 2 * HALF);
	/* Of different rights, so that they are two. */
	if (mprotect(p + HALF * page, HALF * page, PROT_READ))
		die("mprotect");
	return p;
}

static NOINLINE void map_rest(void)
{
	touch(map_anon(REST * page), REST);
}

int main(void)
{
	unsigned char core;
	int sealed, failed;
	char *p, *to;

	start();
	map_rest();
	to = map_anon(2 * HALF * page);
	munmap(to, 2 * HALF * page);
	p = map_both();
	sealed = !syscall(SYS_mseal, p + HALF * page, HALF * page, 0);
	failed = mremap(p, 2 * HALF * page, 2 * HALF * page, MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
		 MAP_FAILED;
	printf("{\"resident\":%lu}\n", (2 * HALF + REST) * page);
	printf("{\"half\":%d}\ndone\n", sealed && failed && !mincore(to, page, &core));
	await_line();
	return 0;
}
