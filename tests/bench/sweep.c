/* SPDX-License-Identifier: GPL-2.0-only
 * For scripts/bench access: 256 MiB, of which 16 are read over and over, and of 64 more a page
 * every STEP us. sweep SECONDS STEP: "ready PID", waits for a line, runs, prints rounds a second,
 * the bytes it read of each part, and the worst pause of a mapping call made once a millisecond. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MIB  (1ul << 20)
#define ALL  (256 * MIB)
#define HOT  (16 * MIB)
#define SLOW (64 * MIB)
#define PAGE 4096ul

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static uint64_t map_once(void)
{
	uint64_t began = now();
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(p, PAGE);
	return now() - began;
}

int main(int argc, char **argv)
{
	uint64_t run = (uint64_t)((argc > 1 ? atof(argv[1]) : 2) * 1e9), began, t, next_map = 0,
		 worst = 0;
	uint64_t step = argc > 2 ? strtoull(argv[2], NULL, 10) * 1000 : 100000;
	size_t rounds = 0, slow = 0, i;
	volatile char *m;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	m = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return 1;
	for (i = 0; i < ALL; i += PAGE)
		m[i] = 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	for (began = t = now(); t - began < run; t = now(), rounds++) {
		for (i = 0; i < HOT; i += PAGE)
			(void)m[i];
		for (; slow < (t - began) / step && slow < SLOW / PAGE; slow++)
			(void)m[HOT + slow * PAGE];
		if (t < next_map)
			continue;
		next_map = t + 1000000;
		t = map_once();
		worst = t > worst ? t : worst;
	}
	printf("%.0f %zu %zu %.2f\n", (double)rounds * 1e9 / (double)(now() - began), HOT,
	       slow * PAGE, (double)worst / 1e6);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
