// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks of several functions on the same pages, allocated and freed in every way an allocator
 * offers, against a shadow of the program's own: one byte for each byte it ever got, which says
 * whose it is and whether it lives. A byte counts where its page is in memory; what was freed
 * counts where its page was there already. Prints "ready PID", waits, works, prints the truth of
 * each function and "done"; then forks, if told so by an argument, and the child does the same.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include "work.h"

#define REGION	(2ul << 20)
#define REGIONS 64
#define LIVE	128

enum site {
	NOBODY,
	SITE_A,
	SITE_B,
	SITE_C,
	GROWING,
	FIRST,
	SECOND,
	PRODUCER,
	FAILING,
	ALIGNING,
	LARGE,
	UNTOUCHED,
	CHILD,
	SITES
};
static const char *const names[SITES] = {
	[SITE_A] = "site_a",	 [SITE_B] = "site_b",	    [SITE_C] = "site_c",
	[GROWING] = "growing",	 [FIRST] = "first",	    [SECOND] = "second",
	[PRODUCER] = "producer", [FAILING] = "failing",	    [ALIGNING] = "aligning",
	[LARGE] = "large",	 [UNTOUCHED] = "untouched", [CHILD] = "in_child",
};

static uintptr_t bases[REGIONS];
static unsigned char shadow[REGIONS][REGION];
static size_t reserved[SITES];
static int pagemap_fd = -1;

/* ---- the shadow ---- */

static unsigned char *shade(uintptr_t at)
{
	uintptr_t base = at / REGION * REGION;
	int i;

	for (i = 0; i < REGIONS && bases[i] && bases[i] != base; i++)
		;
	if (i == REGIONS)
		die("more regions than there are");
	bases[i] = base;
	return &shadow[i][at - base];
}

static int is_there(uintptr_t at)
{
	uint64_t entry = 0;

	if (pread(pagemap_fd, &entry, sizeof(entry), (off_t)(at / page * sizeof(entry))) !=
	    sizeof(entry))
		die("pagemap");
	return entry >> 63;
}

static void lives(void *p, size_t len, enum site site)
{
	size_t i;

	for (i = 0; i < len; i++)
		*shade((uintptr_t)p + i) = (unsigned char)(site | LIVE);
	reserved[site] += len;
}

/* Before it is given back. */
static void dies(void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p, end = at + len;
	enum site site = *shade(at) & ~LIVE;
	int there = 0;

	for (reserved[site] -= len; at < end; at++) {
		if (at == (uintptr_t)p || at % page == 0)
			there = is_there(at);
		*shade(at) = there ? (unsigned char)site : NOBODY;
	}
}

static void drop(void *p, size_t len)
{
	dies(p, len);
	free(p);
}

/* What is unmapped with its block is nobody's, and not in memory. */
static void drop_mapping(void *p, size_t len)
{
	uintptr_t at = (uintptr_t)p;

	dies(p, len);
	for (; at < (uintptr_t)p + len; at++)
		*shade(at) = NOBODY;
	free(p);
}

static void truth(int pid)
{
	size_t live[SITES] = {0}, freed[SITES] = {0}, i, k;
	int s, there = 0;
	unsigned char b;

	for (i = 0; i < REGIONS && bases[i]; i++)
		for (k = 0; k < REGION; k++) {
			b = shadow[i][k];
			if (k % page == 0)
				there = is_there(bases[i] + k);
			if (!b || !there)
				continue;
			++*(b & LIVE ? &live[b & ~LIVE] : &freed[b]);
		}
	for (s = 1; s < SITES; s++)
		printf("{\"pid\":%d,\"site\":\"%s\",\"reserved\":%zu,\"live\":%zu,\"freed\":%zu}\n",
		       pid, names[s], reserved[s], live[s], freed[s]);
}

/* ---- who allocates ---- */

static void *got(void *p, size_t len, enum site site)
{
	if (!p)
		die(names[site]);
	memset(p, 1, len);
	lives(p, len, site);
	return p;
}

static NOINLINE void *site_a(size_t n)
{
	return got(malloc(n), n, SITE_A);
}

static NOINLINE void *site_b(size_t n)
{
	return got(malloc(n), n, SITE_B);
}

static NOINLINE void *site_c(size_t n)
{
	return got(calloc(n, 1), n, SITE_C);
}

static void mixed(void)
{
	static void *b[3000];
	size_t i;

	for (i = 0; i < 3000; i++) {
		site_a(48 + i % 7);
		b[i] = site_b(100 + i % 13);
		site_c(24);
	}
	for (i = 0; i < 3000; i += 3)
		drop(b[i], 100 + i % 13);
}

/* Each realloc ends a block and makes one. */
static void *resize(void *p, size_t from, size_t to)
{
	void *q;

	dies(p, from);
	q = realloc(p, to);
	if (!q)
		die("realloc");
	memset(q, 1, to);
	lives(q, to, GROWING);
	return q;
}

static NOINLINE void growing(void)
{
	static const size_t sizes[] = {10, 100, 90, 1000, 5000, 700, 20000, 19000, 40000};
	void *p[40];
	size_t i, k;

	for (k = 0; k < 40; k++)
		p[k] = got(malloc(sizes[0]), sizes[0], GROWING);
	for (i = 1; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (k = 0; k < 40; k++)
			p[k] = resize(p[k], sizes[i - 1], sizes[i]);
	/* Gives back, and returns NULL or a block of no bytes. */
	dies(p[0], sizes[8]);
	p[0] = realloc(p[0], 0);
	p[1] = got(reallocarray(NULL, 7, 111), 777, GROWING);
}

static NOINLINE void *first(void)
{
	return got(malloc(200), 200, FIRST);
}

static NOINLINE void second(void)
{
	got(malloc(180), 180, SECOND);
}

/* The second gets the places of the first. */
static void reused(void)
{
	static void *p[500];
	size_t i;

	for (i = 0; i < 500; i++)
		p[i] = first();
	for (i = 0; i < 500; i++)
		drop(p[i], 200);
	for (i = 0; i < 300; i++)
		second();
}

static void *made[800];
static pthread_barrier_t needed;

static NOINLINE void *producer(void *arg)
{
	size_t i;

	pthread_barrier_wait(&needed);
	for (i = 0; i < 800; i++)
		made[i] = got(malloc(300), 300, PRODUCER);
	return arg;
}

/* What one thread allocates another frees. */
static void handed_over(pthread_t t)
{
	size_t i;

	pthread_barrier_wait(&needed);
	pthread_join(t, NULL);
	for (i = 0; i < 800; i += 2)
		drop(made[i], 300);
}

/* Calls that fail leave what is there. */
static NOINLINE void failing(void)
{
	volatile size_t huge = SIZE_MAX / 2, bad = 3;
	void *p = got(malloc(1234), 1234, FAILING), *q = NULL;

	if (malloc(huge) || calloc(huge, 8) || realloc(p, huge) || reallocarray(p, huge, 8) ||
	    aligned_alloc(64, huge) || !posix_memalign(&q, bad, 100) ||
	    !posix_memalign(&q, 64, huge))
		die("what cannot be was allocated");
	if (!malloc(0))
		die("malloc(0)");
	free(NULL);
}

static NOINLINE void aligning(void)
{
	void *p = NULL;

	if (posix_memalign(&p, 256, 1000))
		die("posix_memalign");
	got(p, 1000, ALIGNING);
	got(aligned_alloc(64, 640), 640, ALIGNING);
	drop(got(memalign(512, 777), 777, ALIGNING), 777);
	got(memalign(1024, 333), 333, ALIGNING);
	got(valloc(5000), 5000, ALIGNING);
	got(pvalloc(100), 100, ALIGNING);
	got(reallocarray(NULL, 10, 50), 500, ALIGNING);
}

static NOINLINE void large(void)
{
	void *p = got(malloc(700001), 700001, LARGE);

	got(calloc(3, 100003), 300009, LARGE);
	drop_mapping(p, 700001);
}

/* Never touched and freed; others get the place. */
static NOINLINE void *untouched(void)
{
	void *p = malloc(100000);

	lives(p, 100000, UNTOUCHED);
	return p;
}

static NOINLINE void in_child(void)
{
	size_t i;

	for (i = 0; i < 300; i++)
		got(malloc(150), 150, CHILD);
	for (i = 1; i < 800; i += 2)
		drop(made[i], 300);
}

static void forks(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid) {
		waitpid(pid, NULL, 0);
		return;
	}
	close(pagemap_fd);
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	/* Until the probes are there, and no longer than that. */
	await_line();
	in_child();
	truth((int)getpid());
	printf("done\n");
	await_line();
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t;
	void *p;

	(void)argv;
	/* The heap never shrinks: what is in memory stays there. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	pagemap_fd = open("/proc/self/pagemap", O_RDONLY);
	/* What the C library allocates for a thread lies on none of our places. */
	pthread_barrier_init(&needed, NULL, 2);
	if (pthread_create(&t, NULL, producer, NULL))
		die("pthread_create");
	start();
	p = untouched();
	mixed();
	drop(p, 100000);
	growing();
	reused();
	handed_over(t);
	failing();
	aligning();
	large();
	truth((int)getpid());
	printf("done\n");
	if (argc > 1)
		forks();
	await_line();
	return 0;
}
