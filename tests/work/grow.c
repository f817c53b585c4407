// SPDX-License-Identifier: GPL-2.0-only
/*
 * Grows by a known step for every line it reads and says what it holds by then.
 * Prints "ready PID", then for each line one JSON line and "done".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

static NOINLINE void grow_step(size_t pages, size_t touched)
{
	touch(map_anon(pages * page), touched);
}

int main(void)
{
	static const size_t steps[] = {499, 1013, 2003, 251, 3001};
	size_t reserved = 0, resident = 0, i = 0;

	start();
	for (;; i = (i + 1) % (sizeof(steps) / sizeof(steps[0]))) {
		grow_step(steps[i], steps[i] - 23);
		reserved += steps[i];
		resident += steps[i] - 23;
		say("grow_step", reserved, resident, resident);
		printf("done\n");
		await_line();
	}
}
