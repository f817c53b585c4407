/* SPDX-License-Identifier: GPL-2.0-only
 * names FILE: for each file offset read (hexadecimal), a line of its frames, innermost first:
 * function, file and line, by tabs. */
#include <stdio.h>
#include <stdlib.h>
#include "lib/sym/sym.h"

#define BASE	   0x10000000ull
#define MAX_FRAMES 64

static const char *text(const char *s)
{
	return s ? s : "??";
}

int main(int argc, char **argv)
{
	struct sym_frame f[MAX_FRAMES];
	struct sym_files *files;
	struct sym_space *s;
	struct sym_spot at;
	char line[64];
	int i, n;

	if (argc != 2 || sym_files_new(&files) || sym_space_new(files, &s) ||
	    sym_space_map(s, BASE, BASE + (1ull << 32), 0, -1, SYM_BY_PATH, argv[1]))
		return fprintf(stderr, "usage: names FILE < offsets\n"), 2;
	while (fgets(line, sizeof(line), stdin)) {
		if (!sym_locate(s, BASE + strtoull(line, NULL, 16), 0, &at))
			return 1;
		n = sym_resolve(files, &at, f, MAX_FRAMES);
		if (n < 0)
			return 1;
		for (i = 0; i < n; i++)
			printf("%s%s\t%s\t%u", i ? "\t" : "", text(f[i].function), text(f[i].file),
			       f[i].line);
		puts("");
	}
	sym_space_free(&s);
	sym_files_free(&files);
	return 0;
}
