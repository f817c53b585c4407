// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory above 128 TiB, where page tables of five levels are needed, on both sides of an entry of
 * the highest one. Prints nothing of it where the kernel has no such addresses.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include "work.h"

#define BOUNDARY (3UL << 48)

static NOINLINE void above(size_t pages)
{
	char *p = map_at((char *)(BOUNDARY - 7 * page), pages * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if ((uintptr_t)p < 1UL << 47)
		return;
	touch(p, 5); /* below the boundary, and from 9 to 19 above it */
	touch(p + 16 * page, 11);
	say("above", pages, 16, 16);
}

static NOINLINE void below(size_t pages)
{
	touch(map_anon(pages * page), pages);
	say("below", pages, pages, pages);
}

int main(void)
{
	start();
	above(101);
	below(23);
	printf("done\n");
	await_line();
	return 0;
}
