// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory on nodes of its choice: bound to the first, bound to the second, spread over both by
 * turns. The kernel is asked afterwards, page by page, where each lies (move_pages), and that is
 * what is printed. Prints "ready PID", waits for a line, acts, prints JSON lines and "done", waits.
 */
#define _GNU_SOURCE
#include "work.h"

#define MPOL_BIND	2
#define MPOL_INTERLEAVE 3
#define MOST		1021

static NOINLINE char *place(char *p, size_t pages, int policy, unsigned long nodes)
{
	/* Of a machine with one node the rest is asked for in vain; the truth is where pages are.
	 */
	if (call(SYS_mbind, (long)p, (long)(pages * page), policy, (long)&nodes, 8, 0) &&
	    errno != EINVAL)
		die("mbind");
	touch(p, pages);
	return p;
}

static NOINLINE char *on_first(size_t pages)
{
	return place(map_anon(pages * page), pages, MPOL_BIND, 1);
}

static NOINLINE char *on_second(size_t pages)
{
	return place(map_anon(pages * page), pages, MPOL_BIND, 2);
}

static NOINLINE char *by_turns(size_t pages)
{
	return place(map_anon(pages * page), pages, MPOL_INTERLEAVE, 3);
}

static void tell(const char *owner, char *p, size_t pages)
{
	static void *at[MOST];
	static int node[MOST];
	size_t n[2] = {0};

	for (size_t i = 0; i < pages; i++)
		at[i] = p + i * page;
	if (call(SYS_move_pages, 0, (long)pages, (long)at, 0, (long)node, 0))
		die("move_pages");
	for (size_t i = 0; i < pages; i++) {
		if (node[i] < 0 || node[i] > 1) {
			errno = -node[i];
			die("a page is on no node");
		}
		n[node[i]]++;
	}
	printf("{\"owner\":\"%s\",\"reserved\":%zu,\"resident\":%zu,\"touched\":%zu,"
	       "\"node0\":%zu,\"node1\":%zu}\n",
	       owner, pages * page, pages * page, pages * page, n[0] * page, n[1] * page);
}

int main(void)
{
	start();

	char *first = on_first(701), *second = on_second(307), *both = by_turns(1021);

	tell("on_first", first, 701);
	tell("on_second", second, 307);
	tell("by_turns", both, 1021);
	printf("done\n");
	await_line();
	return 0;
}
