/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/columns.h"
#include "lib/join/join.h"

int columns_by(const char *verb, const char *name)
{
	const char *near = "resident";
	int c = cost_find(name ? name : near, &near);

	if (c < 0)
		fail(verb, "no column '%s': the nearest is %s", name, near);
	return c;
}

int columns_pick(const char *verb, const char *list, int by, int *ret)
{
	static const int usual[] = {COST_RESIDENT, COST_GROWN, COST_RESERVED, COST_TOUCHED,
				    COST_SWAPPED};
	char copy[256], *name, *save;
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
	ret[n] = -1;
	return 0;
}
