// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many blocks of several functions and sizes, every byte of them written: what of them lives is in
 * memory. Some are freed, some grow, some are allocated by a thread and freed by another, some in a
 * signal handler's time. Prints "ready PID", waits for a line, works, prints for each function the
 * bytes that live and "done".
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <malloc.h>
#include <pthread.h>
#include "work.h"

enum site { SMALL, MIXED, LARGE, FREED, GROWN, THREADED, SITES };
static const char *const names[SITES] = {
	[SMALL] = "small_blocks", [MIXED] = "mixed_blocks", [LARGE] = "large_blocks",
	[FREED] = "freed_blocks", [GROWN] = "grown_blocks", [THREADED] = "threads_blocks",
};

static size_t lives[SITES];
static void *handed[4000];

static void *filled(void *p, size_t n, enum site site)
{
	if (!p)
		die("malloc");
	memset(p, (int)site + 1, n);
	lives[site] += n;
	return p;
}

static NOINLINE void small_blocks(void)
{
	int i;

	for (i = 0; i < 100003; i++)
		filled(malloc(80), 80, SMALL);
}

static NOINLINE void mixed_blocks(void)
{
	size_t n = 16;
	int i;

	for (i = 0; i < 3001; i++, n = n * 7 % 4093 + 16)
		filled(i % 2 ? malloc(n) : calloc(1, n), n, MIXED);
}

static NOINLINE void large_blocks(void)
{
	int i;

	for (i = 0; i < 23; i++)
		filled(malloc(300007), 300007, LARGE);
}

/* Two of three go, and their places to nobody: they are larger than what comes later. */
static NOINLINE void freed_blocks(void)
{
	static void *all[3000];
	int i;

	for (i = 0; i < 3000; i++)
		all[i] = filled(malloc(5003), 5003, FREED);
	for (i = 0; i < 3000; i++)
		if (i % 3) {
			free(all[i]);
			lives[FREED] -= 5003;
		}
}

static NOINLINE void grown_blocks(void)
{
	size_t n, was;
	void *p;
	int i;

	for (i = 0; i < 301; i++)
		for (p = NULL, was = 0, n = 100; n < 30000; was = n, n *= 3) {
			p = realloc(p, n);
			lives[GROWN] -= was;
			filled(p, n, GROWN);
		}
}

static NOINLINE void *threads_blocks(void *arg)
{
	int i;

	for (i = 0; i < 4000; i++)
		handed[i] = filled(malloc(2003), 2003, THREADED);
	return arg;
}

int main(void)
{
	pthread_t t;
	int i;

	/* What is freed stays in memory, or not: it is nobody's. */
	start();
	small_blocks();
	mixed_blocks();
	large_blocks();
	freed_blocks();
	grown_blocks();
	if (pthread_create(&t, NULL, threads_blocks, NULL) || pthread_join(t, NULL))
		die("thread");
	for (i = 0; i < 1000; i++) {
		free(handed[i]);
		lives[THREADED] -= 2003;
	}
	for (i = 0; i < SITES; i++)
		printf("{\"pid\":%d,\"site\":\"%s\",\"lives\":%zu}\n", (int)getpid(), names[i],
		       lives[i]);
	printf("done\n");
	await_line();
	return 0;
}
