// SPDX-License-Identifier: GPL-2.0-only
/*
 * reload FIRST SECOND: loads a plugin, has it hold memory, closes it, and loads another that comes
 * to lie at the same addresses and stays. Prints "ready PID", waits for a line, acts, prints what
 * it did as a JSON line and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "work.h"

/* Where its code lay. */
static void *run(const char *path, int keep)
{
	void *lib = dlopen(path, RTLD_NOW), *at = lib ? dlsym(lib, "hold") : NULL;

	if (!at || ((char *(*)(void))at)() == MAP_FAILED)
		die(path);
	if (!keep)
		dlclose(lib);
	return at;
}

int main(int argc, char **argv)
{
	void *first, *second;

	if (argc != 3)
		return 2;
	start();
	first = run(argv[1], 0);
	second = run(argv[2], 1);
	printf("{\"same\":%d}\ndone\n", first == second);
	await_line();
	return 0;
}
