// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that is built again: FILL is what one of its functions is called, INLINE builds it into
 * its caller, PAGES is what it maps. Prints "ready PID", waits for a line, says what it holds and
 * "done".
 */
#define _GNU_SOURCE
#include "work.h"

#define NAME_OF(x) #x
#define NAME(x)	   NAME_OF(x)

static NOINLINE void table_new(void)
{
	touch(map_anon(300 * page), 300);
}

#ifdef INLINE
static inline __attribute__((always_inline)) void FILL(void)
#else
static NOINLINE void FILL(void)
#endif
{
	touch(map_anon(PAGES * page), PAGES);
}

static NOINLINE void serve(void)
{
	FILL();
}

int main(void)
{
	start();
	table_new();
	serve();
	say("table_new", 300, 300, 300);
	say(NAME(FILL), PAGES, PAGES, PAGES);
	printf("done\n");
	await_line();
	return 0;
}
