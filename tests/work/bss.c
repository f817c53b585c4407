// SPDX-License-Identifier: GPL-2.0-only
/*
 * A static array, which exec maps without a call. Prints "ready PID", waits for a line, touches it,
 * prints what it did as JSON lines and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include "work.h"

#define PAGES 1511

static char array[PAGES << 12];

int main(void)
{
	start();
	touch(array, PAGES);
	printf("{\"bss\":%zu}\ndone\n", PAGES * page);
	await_line();
	return 0;
}
