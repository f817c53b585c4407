/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>
#include "lib/text/text.h"

unsigned int text_distance(const char *a, const char *b)
{
	unsigned int row[32], i, j, n = (unsigned int)strlen(b);

	if (n > 31)
		return 99;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; *a; a++, i++) {
		unsigned int diag = row[0];

		row[0] = i;
		for (j = 1; j <= n; j++) {
			unsigned int best = diag + (*a != b[j - 1]);

			diag = row[j];
			if (diag + 1 < best)
				best = diag + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

const char *text_nearest(const char *word, const char *const *list)
{
	const char *near = NULL;
	unsigned int best = (unsigned int)strlen(word) / 3 + 1, d;

	for (; *list; list++) {
		d = text_distance(word, *list);
		if (d <= best && (!near || d < best)) {
			best = d;
			near = *list;
		}
	}
	return near;
}
