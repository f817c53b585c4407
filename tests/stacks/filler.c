/* SPDX-License-Identifier: GPL-2.0-only
 * Fills memory by itself and through the C library, some calls deep: "ready PID", then for a line
 * about 40 MiB, then "done"; with an argument again and again. Built in several ways: static, with
 * another C library, stripped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK (256u << 10)

static char *kept[256];
static int nr, forever;

static void keep(char *p)
{
	if (!p)
		exit(1);
	free(kept[nr % 256]);
	kept[nr++ % 256] = p;
}

static __attribute__((noinline)) void by_hand(void)
{
	volatile char *p = malloc(BLOCK);
	unsigned int i;

	keep((char *)p);
	for (i = 0; i < BLOCK; i += 512)
		p[i] = 1;
}

static __attribute__((noinline)) void by_library(void)
{
	char *p = malloc(BLOCK), *q;

	keep(p);
	memset(p, 'x', BLOCK - 1);
	p[BLOCK - 1] = 0;
	q = malloc(BLOCK);
	keep(q);
	memcpy(q, p, BLOCK);
	keep(strdup(q));
}

static __attribute__((noinline)) void by_pieces(void)
{
	unsigned int i;

	for (i = 0; i < BLOCK / 64; i++) {
		char *p = malloc(48);

		if (!p)
			exit(1);
		snprintf(p, 48, "number %u", i);
		if (forever)
			free(p);
	}
}

static __attribute__((noinline)) void fill(int depth)
{
	volatile char frame[100];

	frame[depth % 100] = 1;
	if (depth) {
		fill(depth - 1);
		frame[0]++;
		return;
	}
	by_hand();
	by_library();
	by_pieces();
	keep(calloc(1, BLOCK));
	memmove(kept[0], kept[0] + 1, 100);
}

int main(int argc, char **argv)
{
	char line[16];
	int i;

	(void)argv;
	forever = argc > 1;
	for (i = 0; forever; i = (i + 1) % 30)
		fill(i);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (i = 0; i < 30; i++)
			fill(i);
		puts("done");
		fflush(stdout);
	}
	return 0;
}
