/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/columns.h"
#include "lib/join/join.h"
#include "lib/out/out.h"

/* As a name in the table is written. */
static void trim(const char *text, char *ret, size_t len)
{
	size_t n = 0;

	for (text += strspn(text, " \t"); *text && n < len - 1; text++)
		ret[n++] = (char)tolower((unsigned char)*text);
	while (n && (ret[n - 1] == ' ' || ret[n - 1] == '\t'))
		n--;
	ret[n] = 0;
}

int columns_by(const char *verb, const char *name)
{
	const char *near = "resident";
	char word[64];
	int c;

	trim(name ? name : near, word, sizeof(word));
	c = cost_find(word, &near);
	if (c < 0)
		fail(verb,
		     "no column '%s': the nearest is %s; memprov report --columns help lists "
		     "all",
		     word, near);
	return c;
}

int columns_list(void)
{
	int c;

	for (c = 0; c < COST_MAX; c++)
		printf("%-13s  %-2s  %s\n", cost_columns[c].name, cost_columns[c].unit,
		       cost_columns[c].doc);
	return 0;
}

/* The first that a recording has is sorted by. */
static const struct {
	const char *name, *columns;
} views[] = {
	{"growth", "grown,resident,reserved,touched,faulted,live"},
	{"waste", "resident,reserved,live,freed,slack,padding,cold,thp,swapped"},
	{"pressure", "charged,resident,swapped,refaulted,reclaimed,faults,major-faults,stall"},
	{"numa", "resident,node0,node1,node2,node3,node4,node5,node6,node7,migrated,remote"},
};

const char *columns_view_name(int n)
{
	return n >= 0 && n < (int)(sizeof(views) / sizeof(views[0])) ? views[n].name : NULL;
}

static int add_column(const struct report *r, const char *name, int *ret, int n)
{
	const char *near;
	int c = cost_find(name, &near), at = c < 0 || !out_has(r, c) ? -1 : 0;

	/* A column that is nothing everywhere tells nothing, but for the first. */
	if (at < 0 || (n && !cost_value(&r->total[c]) && !r->total[c].open))
		return n;
	ret[n] = c;
	return n + 1;
}

int columns_view(const char *verb, const struct report *r, const char *view, int *ret)
{
	char copy[128], *name, *save;
	int v, n = 0;

	for (v = 0; columns_view_name(v) && strcmp(view, views[v].name); v++)
		;
	if (!columns_view_name(v)) {
		misuse(verb, "--view %s: growth, waste, pressure or numa", view);
		return -1;
	}
	snprintf(copy, sizeof(copy), "%s", views[v].columns);
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save))
		n = add_column(r, name, ret, n);
	if (!n)
		ret[n++] = COST_RESIDENT;
	ret[n] = -1;
	return ret[0];
}

void columns_seen(const struct report *r, int *ret)
{
	int c, n = 0;

	for (c = 0; c < COST_MAX; c++)
		if (out_has(r, c))
			ret[n++] = c;
	ret[n] = -1;
}

int columns_pick(const char *verb, const char *list, int by, int *ret)
{
	static const int usual[] = {COST_RESIDENT, COST_GROWN, COST_RESERVED, COST_TOUCHED,
				    COST_SWAPPED};
	char copy[1024], *name, *save;
	size_t i;
	int n = 0;

	if (!list) {
		ret[n++] = by;
		for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
			if (usual[i] != by)
				ret[n++] = usual[i];
		ret[n] = -1;
		return 0;
	}
	snprintf(copy, sizeof(copy), "%s", list);
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		if (n == COST_MAX)
			break;
		ret[n] = columns_by(verb, name);
		if (ret[n++] < 0)
			return -1;
	}
	if (!n) {
		fail(verb, "--columns names none; memprov report --columns help lists all");
		return -1;
	}
	ret[n] = -1;
	return 0;
}
