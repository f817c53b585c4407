// SPDX-License-Identifier: GPL-2.0-only
/*
 * callers N: one function asks malloc for N blocks of a mapping each, another for three, always.
 * Between them and the kernel lie the same frames of the C library. Prints "ready PID", waits for a
 * line, acts, prints what it did as JSON lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define BLOCK (1ul << 20)

static char *volatile kept;

static NOINLINE void fill(size_t blocks)
{
	while (blocks--) {
		kept = malloc(BLOCK);
		if (!kept)
			die("malloc");
		memset(kept, 1, BLOCK);
	}
}

static NOINLINE void cache_fill(size_t blocks)
{
	fill(blocks);
	__asm__ volatile("" ::: "memory");
}

static NOINLINE void parse(void)
{
	fill(3);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	size_t blocks = argc > 1 ? (size_t)atoi(argv[1]) : 1;

	start();
	cache_fill(blocks);
	parse();
	printf("{\"cache_fill\":%zu,\"parse\":%d}\ndone\n", blocks, 3);
	await_line();
	return 0;
}
