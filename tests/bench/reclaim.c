/* SPDX-License-Identifier: GPL-2.0-only
 * Pages out and back in again: 32 MiB, four rounds. "ready PID", waits for a line, prints ns a page
 * of the thread. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE   4096UL
#define SIZE   (32UL << 20)
#define ROUNDS 4

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void touch(volatile unsigned long *p, unsigned long with)
{
	for (unsigned long i = 0; i < SIZE; i += PAGE)
		p[i / sizeof(*p)] = i + with;
}

int main(void)
{
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[64];
	double start;

	if (p == MAP_FAILED)
		return 1;
	madvise(p, SIZE, MADV_NOHUGEPAGE);
	touch(p, 0);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	start = cpu_ns();
	for (unsigned long i = 1; i <= ROUNDS; i++) {
		madvise(p, SIZE, MADV_PAGEOUT);
		touch(p, i);
	}
	printf("ns/page %.1f\n", (cpu_ns() - start) / (SIZE / PAGE * ROUNDS));
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin);
}
