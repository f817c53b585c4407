// SPDX-License-Identifier: GPL-2.0-only
/*
 * deep DEPTH wait: first touches of 4 KiB pages, DEPTH to DEPTH + 12 calls deep in turn, so that no
 * stack is like the last few; "ready PID", waits for a line, prints ns a fault of the thread.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SIZE   (128ul << 20)
#define ROUNDS 4

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static __attribute__((noinline)) void touch(char *p, int depth)
{
	volatile char frame[48];

	frame[depth % 48] = 1;
	if (depth) {
		touch(p, depth - 1);
		frame[0]++;
		return;
	}
	*(volatile char *)p = 1;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 30, round;
	double ns = 0, start;
	char line[16];
	size_t i;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc > 2 && !fgets(line, sizeof(line), stdin))
		return 0;
	for (round = 0; round < ROUNDS; round++) {
		char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			return 1;
		madvise(p, SIZE, MADV_NOHUGEPAGE);
		start = now_ns();
		for (i = 0; i < SIZE; i += 4096)
			touch(p + i, depth + (int)(i / 4096 % 13));
		ns += now_ns() - start;
		munmap(p, SIZE);
	}
	printf("ns/fault %.1f\n", ns / (SIZE / 4096 * ROUNDS));
	fflush(stdout);
	if (argc > 2)
		fgets(line, sizeof(line), stdin);
	return 0;
}
