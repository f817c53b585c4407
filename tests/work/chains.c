// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on stacks of which it prints every return address: a deep one with frames of all sizes,
 * and two that differ in the outermost of three callers alone, taken in turn, with the same
 * registers in the function that faults. Each page is touched once.
 */
#define _GNU_SOURCE
#include "work.h"

#define DEPTH 60
#define DEEP  512ul
#define TURNS 1024ul

/* Return addresses, innermost first: every function adds its own on its way out. */
static struct chain {
	void *ret[DEPTH + 2];
	int nr;
} now;

static void say_chain(const char *name, const struct chain *c, char *first, size_t step,
		      size_t count)
{
	printf("{\"name\":\"%s\",\"first\":%lu,\"step\":%zu,\"count\":%zu,\"chain\":[", name,
	       (unsigned long)first, step * page, count);
	for (int i = 0; i < c->nr; i++)
		printf("%s%lu", i ? "," : "", (unsigned long)c->ret[i]);
	printf("]}\n");
}

static NOINLINE void leaf(char *p, size_t pages)
{
	now.nr = 0;
	now.ret[now.nr++] = __builtin_return_address(0);
	touch(p, pages);
	__asm__ volatile("" ::: "memory");
}

/* 16 bytes to more than a page. */
static NOINLINE void down(int depth, char *p, size_t pages)
{
	volatile char *room = __builtin_alloca(16 + (size_t)(depth * 1237) % 4567);

	room[0] = 1;
	if (depth)
		down(depth - 1, p, pages);
	else
		leaf(p, pages);
	now.ret[now.nr++] = __builtin_return_address(0);
	room[0] = 0;
}

static NOINLINE void middle(char *p)
{
	leaf(p, 1);
	now.ret[now.nr++] = __builtin_return_address(0);
}

static NOINLINE void turn_a(char *p)
{
	middle(p);
	now.ret[now.nr++] = __builtin_return_address(0);
}

static NOINLINE void turn_b(char *p)
{
	middle(p);
	now.ret[now.nr++] = __builtin_return_address(0);
}

static struct chain of_a, of_b;

/* No branch: the compiler must not make two calls of one. */
static NOINLINE void pair(char *p)
{
	turn_a(p);
	of_a = now;
	turn_b(p + page);
	of_b = now;
}

int main(void)
{
	char *deep, *turns;

	start();
	deep = map_anon(DEEP * page);
	turns = map_anon(TURNS * page);
	down(DEPTH - 1, deep, DEEP);
	say_chain("deep", &now, deep, 1, DEEP);
	for (size_t i = 0; i < TURNS; i += 2)
		pair(turns + i * page);
	say_chain("a", &of_a, turns, 2, TURNS / 2);
	say_chain("b", &of_b, turns + page, 2, TURNS / 2);
	printf("done\n");
	await_line();
	return 0;
}
