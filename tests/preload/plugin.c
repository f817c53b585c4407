// SPDX-License-Identifier: GPL-2.0-only
/* A plugin that holds memory by a function of its own; built twice, the two alike but for the
 * function's name and how much it takes. */
#include <stddef.h>
#include <sys/mman.h>

#define PAGE 4096ul

__attribute__((noinline)) char *HOLD(void)
{
	char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	for (unsigned long i = 0; p != MAP_FAILED && i < PAGES; i++)
		p[i * PAGE] = 1;
	return p;
}

char *hold(void)
{
	char *p = HOLD();

	__asm__ volatile("" ::: "memory");
	return p;
}
