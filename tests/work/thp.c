// SPDX-License-Identifier: GPL-2.0-only
/*
 * Huge pages: one block filled, one touched once (all of it is resident where
 * the kernel gave a huge page), one with its middle unmapped.
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
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

#define HUGE_SIZE (2UL << 20)

/* Two aligned megabytes; the rest of the reservation is given back. */
static inline __attribute__((always_inline)) char *map_block(void)
{
	char *raw = map_anon(2 * HUGE_SIZE);
	size_t head = -(uintptr_t)raw & (HUGE_SIZE - 1);

	if (head && munmap(raw, head))
		die("munmap");
	if (munmap(raw + head + HUGE_SIZE, HUGE_SIZE - head))
		die("munmap");
	madvise(raw + head, HUGE_SIZE, MADV_HUGEPAGE);
	return raw + head;
}

static NOINLINE void full_block(void)
{
	touch(map_block(), HUGE_SIZE / page);
}

static NOINLINE size_t sparse_block(void)
{
	char *p = map_block();
	size_t present = 0;

	touch(p + 77 * page, 1);
	for (size_t i = 0; i < HUGE_SIZE / page; i++)
		present += pagemap(p + i * page) >> 63;
	return present;
}

static NOINLINE void cut_block(void)
{
	char *p = map_block();

	touch(p, HUGE_SIZE / page);
	if (munmap(p + 100 * page, 131 * page))
		die("munmap");
}

int main(void)
{
	start();
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);

	size_t n = HUGE_SIZE / page;
	full_block();
	size_t sparse = sparse_block();
	cut_block();

	say("full_block", n, n, n);
	say("sparse_block", n, sparse, 1);
	say("cut_block", n - 131, n - 131, n);
	printf("done\n");
	await_line();
	return 0;
}
