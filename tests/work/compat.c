// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unmaps by the 32-bit system call table (int 0x80) what it mapped by the 64-bit one, and maps the
 * same range again from another function.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define AT    ((char *)0x20000000)
#define PAGES 64

static NOINLINE void map_wide(void)
{
	touch(map_at(AT, PAGES * page, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1),
	      PAGES);
}

/* munmap and mmap2 of the i386 table; -1 where the kernel has none. */
static NOINLINE long narrow(long nr, long a, long b, long c, long d, long e)
{
	long ret;

	__asm__ volatile("mov %%rbp, %%r12; xor %%ebp, %%ebp; int $0x80; mov %%r12, %%rbp"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "r8", "r9", "r10", "r11", "r12", "memory");
	return (int)ret;
}

int main(void)
{
	start();
	map_wide();
	if (!narrow(91, (long)AT, (long)(PAGES * page), 0, 0, 0) &&
	    narrow(192, (long)AT, (long)(PAGES * page), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1) == (long)AT) {
		touch(AT, PAGES);
		printf("{\"narrow\":%lu}\n", PAGES * page);
	}
	printf("done\n");
	await_line();
	return 0;
}
