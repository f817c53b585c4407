// SPDX-License-Identifier: GPL-2.0-only
/*
 * 10,000 VMAs: one mapping split by mprotect, and single pages mapped apart
 * with alternating protection.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

#define PIECES 5000

static NOINLINE size_t split_range(void)
{
	char *p = map_anon(PIECES * page);
	size_t resident = 0;

	for (size_t i = 0; i < PIECES; i += 3, resident++)
		touch(p + i * page, 1);
	for (size_t i = 1; i < PIECES; i += 2)
		if (mprotect(p + i * page, page, PROT_READ))
			die("mprotect");
	return resident;
}

/* Neighbours differ in protection, so the kernel cannot merge them. */
static NOINLINE size_t map_pieces(void)
{
	size_t resident = 0;

	for (size_t i = 0; i < PIECES; i++) {
		int prot = i % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
		char *p = map_at(NULL, page, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1);

		if (i % 4 == 0) {
			touch(p, 1);
			resident++;
		}
	}
	return resident;
}

int main(void)
{
	start();

	size_t split = split_range();
	size_t pieces = map_pieces();

	say("split_range", PIECES, split, split);
	say("map_pieces", PIECES, pieces, pieces);
	printf("done\n");
	await_line();
	return 0;
}
