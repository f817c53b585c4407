// SPDX-License-Identifier: GPL-2.0-only
/*
 * Four pages of the hugetlb pool mapped, three written, two of these without access afterwards;
 * three more, of which an mremap takes one and a bit; small pages beside them. The pool is in VmSize and in nobody's Rss. Prints "ready PID", waits for
 * a line, acts, prints what it did as JSON lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define HUGE  (2ul << 20)
#define PAGES 37

/* Returns how many the kernel gave. */
static NOINLINE size_t map_pool(void)
{
	/* Rounded up to four by the kernel. */
	char *p = mmap(NULL, 4 * HUGE - 12345, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	for (int i = 0; i < 3; i++)
		p[i * HUGE] = 1;
	if (mprotect(p, 2 * HUGE, PROT_NONE))
		die("mprotect");
	return 3;
}

/* A length that is none of the pool: the kernel rounds it up, to two. */
static NOINLINE size_t shrink_pool(void)
{
	char *p = mmap(NULL, 3 * HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	p[0] = p[HUGE] = 1;
	if (mremap(p, 3 * HUGE, 2 * HUGE - page, 0) != p)
		die("mremap");
	return 2;
}

static void say_pool(const char *owner, size_t reserved, size_t given)
{
	if (given)
		printf("{\"owner\":\"%s\",\"reserved\":%zu,\"resident\":0,\"touched\":%zu,"
		       "\"hugetlb\":%zu}\n",
		       owner, reserved * HUGE, given * HUGE, given * HUGE);
}

static NOINLINE void map_small(void)
{
	touch(map_anon(PAGES * page), PAGES);
}

int main(void)
{
	start();
	size_t given = map_pool(), left = shrink_pool();

	map_small();
	say("map_small", PAGES, PAGES, PAGES);
	say_pool("map_pool", 4, given);
	say_pool("shrink_pool", 2, left);
	printf("done\n");
	await_line();
	return 0;
}
