/* SPDX-License-Identifier: GPL-2.0-only
 * The one causal order of the records: by number, ties as they arrived, since a walk's records
 * share the number of the event before them. Numbers lie close together, so a pass for every eleven
 * bits in which they differ is all it takes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/replay.h"

#define BITS  11
#define SLOTS (1u << BITS)

static void pass(const struct item *from, struct item *to, size_t nr, unsigned int shift)
{
	size_t at[SLOTS] = {0}, sum = 0, n, i;

	for (i = 0; i < nr; i++)
		at[from[i].seq >> shift & (SLOTS - 1)]++;
	for (i = 0; i < SLOTS; i++) {
		n = at[i];
		at[i] = sum;
		sum += n;
	}
	for (i = 0; i < nr; i++)
		to[at[from[i].seq >> shift & (SLOTS - 1)]++] = from[i];
}

int order_items(struct item **items, size_t nr, size_t *cap)
{
	struct item *from = *items, *to, *swap;
	u64 differ = 0;
	size_t i, late = 0;
	unsigned int shift;

	for (i = 1; i < nr; i++) {
		differ |= from[i].seq ^ from[0].seq;
		late += from[i].seq < from[i - 1].seq;
	}
	if (!late)
		return 0;
	to = malloc(nr * sizeof(*to));
	if (!to)
		return -ENOMEM;
	for (shift = 0; shift < 64 && differ >> shift; shift += BITS) {
		pass(from, to, nr, shift);
		swap = from;
		from = to;
		to = swap;
	}
	if (from != *items)
		*cap = nr;
	*items = from;
	free(to);
	return 0;
}
