// SPDX-License-Identifier: GPL-2.0-only
/*
 * Huge pages that were written and are without access now: eight of this process alone, eight that
 * a child shares. They stay resident, and a present bit cannot tell so. Prints "ready PID", waits
 * for a line, acts, prints what it did as JSON lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define HUGE  (2ul << 20)
#define COUNT 8

static char *aligned(char *p)
{
	return (char *)(((unsigned long)p + HUGE - 1) & ~(HUGE - 1));
}

static NOINLINE char *map_alone(void)
{
	return aligned(map_anon((COUNT + 1) * HUGE));
}

static NOINLINE char *map_shared(void)
{
	return aligned(map_anon((COUNT + 1) * HUGE));
}

static void write_huge(char *p)
{
	for (size_t i = 0; i < COUNT; i++)
		p[i * HUGE] = 1;
}

/* The whole of it is resident only where the kernel gave huge pages. */
static size_t pages_of(const char *p)
{
	static unsigned char in[COUNT * HUGE / 4096];
	size_t n = 0;

	if (mincore((void *)p, COUNT * HUGE, in))
		die("mincore");
	for (size_t i = 0; i < sizeof(in); i++)
		n += in[i] & 1;
	return n;
}

int main(void)
{
	start();
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);

	char *shared = map_shared(), *alone = map_alone();

	madvise(shared, COUNT * HUGE, MADV_HUGEPAGE);
	madvise(alone, COUNT * HUGE, MADV_HUGEPAGE);
	write_huge(shared);
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, 9);
		for (;;)
			pause();
	}
	write_huge(alone);
	size_t n_shared = pages_of(shared), n_alone = pages_of(alone);

	if (mprotect(shared, COUNT * HUGE, PROT_NONE) || mprotect(alone, COUNT * HUGE, PROT_NONE))
		die("mprotect");
	say("map_shared", (COUNT + 1) * HUGE / page, n_shared, COUNT * HUGE / page);
	say("map_alone", (COUNT + 1) * HUGE / page, n_alone, COUNT * HUGE / page);
	printf("done\n");
	await_line();
	return 0;
}
