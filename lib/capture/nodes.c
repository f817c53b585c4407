/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>
#include "lib/capture/nodes.h"

static int overlap(const struct nodes *n, const struct mp_walk_node *z)
{
	u32 i;

	for (i = 0; i < n->n; i++)
		if (n->range[i].node != z->node && n->range[i].start_pfn < z->end_pfn &&
		    z->start_pfn < n->range[i].end_pfn)
			return 1;
	return 0;
}

/* A zone that continues the one before it on the same node is one range with it: holes between
 * zones hold no page. */
static int add(struct nodes *n, const struct mp_walk_node *z)
{
	struct mp_walk_node *last = n->n ? &n->range[n->n - 1] : NULL;

	if (overlap(n, z))
		return -1;
	if (last && last->node == z->node && last->end_pfn <= z->start_pfn) {
		last->end_pfn = z->end_pfn;
		return 0;
	}
	if (n->n == MP_WALK_MAX_NODES)
		return -1;
	n->range[n->n++] = *z;
	return 0;
}

void nodes_read(const char *zoneinfo, struct nodes *ret_n)
{
	struct mp_walk_node z = {0};
	unsigned long long spanned = 0, v;
	char line[256];
	unsigned int node;
	FILE *f = fopen(zoneinfo, "re");
	int bad = 0;

	memset(ret_n, 0, sizeof(*ret_n));
	while (f && !bad && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %u, zone", &node) == 1) {
			z.node = node;
			spanned = 0;
		} else if (sscanf(line, " spanned %llu", &v) == 1) {
			spanned = v;
		} else if (sscanf(line, " start_pfn: %llu", &v) == 1 && spanned) {
			z.start_pfn = v;
			z.end_pfn = v + spanned;
			bad = add(ret_n, &z);
		}
	}
	if (f)
		fclose(f);
	/* A range merged over a hole may still cover another node's zone that came later. */
	if (bad)
		ret_n->n = 0;
}

u32 nodes_find(const struct nodes *n, u64 pfn)
{
	u32 i;

	for (i = 0; i < n->n; i++)
		if (pfn >= n->range[i].start_pfn && pfn < n->range[i].end_pfn)
			return n->range[i].node;
	return ~0u;
}
