// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sharded cache that names its shards by memprov-usdt.h. SEED decides their sizes, which are no
 * whole pages, which pages are filled, which shards are served, moved, emptied or given to another.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines and "done", then
 * waits for another line. Its own book has a name for every byte and a bit for every page. It ends
 * badly when a probe has harmed it: a leaf function's variables, or a child.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/api/memprov-usdt.h"
#include "work.h"

#define SHARDS	   13
#define ARENA_SIZE (24UL << 20)

static uint64_t random_state;

static size_t random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static struct shard {
	char name[32];
	char *start;
	size_t len;
	uint64_t used_lo, used_hi; /* between these it was begun or used last */
} shards[SHARDS];

/* The book: 0 nobody, else the number of a shard from 1; and who touched a page first. */
static char *arena;
static uint8_t name_of[ARENA_SIZE], touched_by[ARENA_SIZE / 4096];
static uint8_t filled[ARENA_SIZE / 4096];

__attribute__((noinline)) static char *cache_arena_map(void)
{
	char *p =
		mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, ARENA_SIZE, MADV_NOHUGEPAGE))
		die("mmap");
	return p;
}

__attribute__((noinline)) static void shard_begin(int i, char *start, size_t len)
{
	struct shard *s = &shards[i];

	s->start = start;
	s->len = len;
	s->used_lo = now();
	memprov_resource_begin(s->name, start, len);
	s->used_hi = now();
	memset(name_of + (start - arena), i + 1, len);
}

__attribute__((noinline)) static void shard_end(int i, char *start, size_t len)
{
	memprov_resource_end(shards[i].name, start, len);
	for (size_t at = (size_t)(start - arena); len--; at++)
		if (name_of[at] == i + 1)
			name_of[at] = 0;
}

__attribute__((noinline)) static void shard_serve(int i)
{
	uint64_t before = now();

	memprov_use(shards[i].name);
	shards[i].used_lo = before;
	shards[i].used_hi = now();
}

/* One byte of a page. */
__attribute__((noinline)) static void fill(char *p)
{
	size_t at = (size_t)(p - arena);

	*p = 1;
	if (!filled[at / page] && !touched_by[at / page])
		touched_by[at / page] = name_of[at];
	filled[at / page] = 1;
}

static void fill_some(int i)
{
	for (size_t at = 0; at < shards[i].len; at += page / 2)
		if (random_below(3))
			fill(shards[i].start + at);
}

static void empty(char *start, size_t pages)
{
	if (madvise(start, pages * page, MADV_DONTNEED))
		die("madvise");
	memset(filled + (size_t)(start - arena) / page, 0, pages);
}

static char *page_up(char *p)
{
	return arena + ((size_t)(p - arena) + page - 1) / page * page;
}

/* Some shards are changed when all are there. */
static void change(int i)
{
	struct shard *s = &shards[i];
	char *half = page_up(s->start + s->len / 2);
	int other = (int)random_below(SHARDS);

	switch (random_below(5)) {
	case 0: /* the rest of it is somebody else's from now on */
		if (half < s->start + s->len)
			shard_begin(other, half + 100, (size_t)(s->start + s->len - half) / 2);
		break;
	case 1: /* it lets go of a part */
		shard_end(i, s->start + 50, s->len / 3);
		break;
	case 2: /* its pages are given back, and a few come again */
		if (half < s->start + s->len - page)
			empty(half, (size_t)(s->start + s->len - half) / page);
		fill(half);
		break;
	case 3: /* it ends: nobody's are its bytes */
		shard_end(i, arena, ARENA_SIZE);
		break;
	default:
		shard_serve(i);
		break;
	}
}

/* Calls nothing: its variables may lie below the stack pointer. */
__attribute__((noinline)) static long leaf(const char *name, long from)
{
	volatile long v[12];
	long sum = 0;

	for (int i = 0; i < 12; i++)
		v[i] = from + i;
	memprov_use(name);
	for (int i = 0; i < 12; i++)
		sum += v[i];
	return sum;
}

static void probes_harm_nobody(void)
{
	static const char name[] = "cache/leaf";
	int status = -1;
	pid_t pid;

	if (leaf(name, 1000) != 12 * 1000 + 66)
		die("a variable of a leaf function has changed");
	pid = fork();
	if (!pid)
		_exit(leaf(name, 1) != 12 + 66);
	if (waitpid(pid, &status, 0) != pid || status)
		die("a child has come to harm");
}

static void say_shard(int i)
{
	size_t resident = 0, reserved = 0, touched = 0;

	for (size_t at = 0; at < ARENA_SIZE; at++) {
		reserved += name_of[at] == i + 1;
		resident += name_of[at] == i + 1 && filled[at / page];
	}
	for (size_t at = 0; at < ARENA_SIZE / page; at++)
		touched += touched_by[at] == i + 1;
	printf("{\"resource\": \"%s\", \"reserved\": %zu, \"resident\": %zu, \"touched\": %zu, "
	       "\"used_lo\": %llu, \"used_hi\": %llu}\n",
	       shards[i].name, reserved, resident, touched * page,
	       (unsigned long long)shards[i].used_lo, (unsigned long long)shards[i].used_hi);
}

int main(int argc, char **argv)
{
	char *at;
	int i, round;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 0) * 2654435761u + 1 : 1;
	memset(name_of, 1, sizeof(name_of)); /* their pages are there before the recording */
	memset(name_of, 0, sizeof(name_of));
	memset(touched_by, 1, sizeof(touched_by));
	memset(touched_by, 0, sizeof(touched_by));
	memset(filled, 1, sizeof(filled));
	memset(filled, 0, sizeof(filled));
	start();

	at = arena = cache_arena_map();
	for (i = 0; i < SHARDS; i++) {
		size_t len = (5 + random_below(150)) * page + random_below(page);

		snprintf(shards[i].name, sizeof(shards[i].name), "cache/shard-%d", i);
		shard_begin(i, at, len);
		at += len; /* the next one shares its last page */
		fill_some(i);
	}
	for (round = 0; round < 40; round++)
		shard_serve((int)random_below(SHARDS / 2)); /* the other half is never served */
	for (i = 0; i < SHARDS; i++)
		change(i);
	probes_harm_nobody();
	for (i = 0; i < SHARDS; i++)
		say_shard(i);
	puts("done");
	await_line();
	return 0;
}
