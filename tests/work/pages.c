// SPDX-License-Identifier: GPL-2.0-only
/* One function that maps 23 pages and touches 13 of them: a name to be found, or not. */
#define _GNU_SOURCE
#include "work.h"

#define PAGES	23
#define TOUCHED 13

static NOINLINE void page_owner_a(void)
{
	char *p = map_anon(PAGES * page);

	touch(p, TOUCHED);
	say("page_owner_a", PAGES, TOUCHED, TOUCHED);
}

int main(void)
{
	start();
	page_owner_a();
	printf("done\n");
	await_line();
	return 0;
}
