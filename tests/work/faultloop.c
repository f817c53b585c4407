// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dearest case for a fault profiler: nothing but first touches of 4 KiB pages.
 * Four rounds of 256 MiB; prints ns/fault by the clock and by the time the thread ran. With an
 * argument it prints "ready PID" and waits for a line before it starts, so that a profiler can
 * attach. Then it prints the same of the cheapest system call.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIZE   (256ul << 20)
#define ROUNDS 4
#define CALLS  300000

static double now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static __attribute__((noinline)) void round_of_faults(size_t page)
{
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("faultloop: mmap");
		exit(1);
	}
	/* EINVAL: a kernel without huge pages has none to refuse. */
	madvise(p, SIZE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < SIZE; i += page)
		*(volatile char *)(p + i) = 1;
	munmap(p, SIZE);
}

static void round_of_calls(size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		syscall(SYS_getppid);
}

int main(int argc, char **argv)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char line[64];
	double start, ran;

	(void)argv;
	if (argc > 1) {
		printf("ready %d\n", (int)getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
	}
	start = now_ns(CLOCK_MONOTONIC);
	ran = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++)
		round_of_faults(page);
	start = (now_ns(CLOCK_MONOTONIC) - start) / (double)(ROUNDS * (SIZE / page));
	ran = (now_ns(CLOCK_THREAD_CPUTIME_ID) - ran) / (double)(ROUNDS * (SIZE / page));
	printf("ns/fault %.1f %.1f", start, ran);
	ran = now_ns(CLOCK_THREAD_CPUTIME_ID);
	round_of_calls(CALLS);
	printf(" ns/call %.1f\n", (now_ns(CLOCK_THREAD_CPUTIME_ID) - ran) / CALLS);
	fflush(stdout);
	/* A profiler takes its last picture of a process that is still there. */
	if (argc > 1 && !fgets(line, sizeof(line), stdin))
		return 0;
	return 0;
}
