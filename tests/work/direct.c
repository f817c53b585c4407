// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct test: 64 GiB reserved, a scattered set touched, part of it paged
 * out; then the range is unmapped and another function reuses its address.
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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

static uint64_t random_state;

static size_t random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

#define INDEX_SIZE    (64UL << 30)
#define REUSE_SIZE    (8UL << 20)
#define REUSE_TOUCHED (5UL << 20)
#define MAX_TOUCHED   5000

static char *touched[MAX_TOUCHED];

static NOINLINE char *reserve_index(void)
{
	return map_at(NULL, INDEX_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

/* One page at a random place in each of n equal slots: all distinct. */
static NOINLINE size_t touch_index(char *index)
{
	size_t n = 3001 + random_below(MAX_TOUCHED - 3001);
	size_t slot = INDEX_SIZE / page / n;

	for (size_t i = 0; i < n; i++) {
		touched[i] = index + (i * slot + random_below(slot)) * page;
		touch(touched[i], 1);
	}
	return n;
}

/* Pages out the first n touched pages; returns how many are in swap. */
static NOINLINE size_t pageout_index(size_t n)
{
	size_t out = 0;

	for (int round = 0; round < 50 && out < n; round++) {
		out = 0;
		for (size_t i = 0; i < n; i++)
			madvise(touched[i], page, MADV_PAGEOUT);
		for (size_t i = 0; i < n; i++)
			out += pagemap(touched[i]) >> 62 == 1;
	}
	return out;
}

static NOINLINE void reuse_range(char *at)
{
	touch(map_at(at, REUSE_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1),
	      REUSE_TOUCHED / page);
}

static void say_step(int step, const char *owner, size_t reserved, size_t resident, size_t swapped,
		     size_t touched_bytes)
{
	printf("{\"owner\":\"%s\",\"step\":%d,\"reserved\":%zu,\"resident\":%zu,"
	       "\"swapped\":%zu,\"touched\":%zu}\n",
	       owner, step, reserved, resident, swapped, touched_bytes);
}

int main(int argc, char **argv)
{
	random_state = (argc > 1 ? strtoul(argv[1], NULL, 0) : 1) * 0x9e3779b97f4a7c15ULL | 1;
	start();

	char *index = reserve_index();
	size_t n = touch_index(index);
	size_t out = swap_is_on() ? pageout_index(n / 3) : 0;

	say_step(1, "reserve_index", INDEX_SIZE, (n - out) * page, out * page, n * page);
	printf("done\n");
	await_line();

	if (munmap(index, INDEX_SIZE))
		die("munmap");
	reuse_range(index);
	say_step(2, "reserve_index", 0, 0, 0, n * page);
	say_step(2, "reuse_range", REUSE_SIZE, REUSE_TOUCHED, 0, REUSE_TOUCHED);
	printf("done\n");
	await_line();
	return 0;
}
