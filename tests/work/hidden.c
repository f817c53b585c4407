/* SPDX-License-Identifier: GPL-2.0-only
 * Built without frame pointers: asks for memory through libc's mmap and fills it through libc's memset,
 * both of which hide their caller from a chain of frame pointers. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 1237ul
#define FILLED 739ul

__attribute__((noinline)) static char *hidden_asker(size_t len)
{
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	__asm__ volatile("" : "+r"(p)); /* no tail call */
	return p;
}

__attribute__((noinline)) static void hidden_filler(char *p, size_t len)
{
	memset(p, 1, len);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	char line[64], *p;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready %d\n", (int)getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	p = hidden_asker(PAGES * 4096);
	if (p == MAP_FAILED)
		return 1;
	madvise(p, PAGES * 4096, MADV_NOHUGEPAGE);
	hidden_filler(p, FILLED * 4096);
	printf("{\"owner\":\"hidden_asker\",\"reserved\":%lu,\"resident\":%lu,\"touched\":%lu}\n",
	       PAGES * 4096, FILLED * 4096, FILLED * 4096);
	printf("done\n");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	return 0;
}
