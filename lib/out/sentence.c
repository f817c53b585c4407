/* SPDX-License-Identifier: GPL-2.0-only
 * Why a row is resident and what could be given back, in one plain sentence that says no more than
 * its numbers do. */
#include <string.h>
#include "lib/out/out.h"

static s64 of(const struct row *row, int column)
{
	return row->cost[column].known ? cost_value(&row->cost[column]) : 0;
}

/* What the kind of owner means for who. */
static void by_kind(FILE *f, const struct row *row)
{
	switch (row->kind) {
	case ORIGIN_FILE:
		fputs("pages of a file: clean ones are dropped by the kernel when memory is short, "
		      "and read again when used",
		      f);
		break;
	case ORIGIN_SHMEM:
		fputs("a shared memory object: it stays until nobody maps it and its name is gone, "
		      "or it is swapped",
		      f);
		break;
	case ORIGIN_STACK:
		fputs("the main thread's stack: it stays as deep as it ever was", f);
		break;
	case ORIGIN_MEMCG:
		fputs("charged to the cgroup and mapped by none of its processes", f);
		break;
	case ORIGIN_SPECIAL:
		fputs("a mapping of the kernel's own making", f);
		break;
	case ORIGIN_PREEXISTING:
		fputs("mapped before the recording began, so its caller was not seen", f);
		if (row->evidence)
			fprintf(f, "; what it is was told by its shape: %s", row->evidence);
		break;
	case ORIGIN_UNATTRIBUTED:
		fputs("in nobody's known mapping: events were lost or could not be seen", f);
		break;
	case ORIGIN_FAULT:
		fputs("first touched by this stack; who mapped it was not seen", f);
		break;
	case ORIGIN_MALLOC:
		fputs("allocated by this stack, live or freed since", f);
		break;
	case ORIGIN_PROCESS:
		fputs("all that the process has", f);
		break;
	case ORIGIN_NODE:
		fputs("all that lies on the node", f);
		break;
	default:
		fputs("mapped by this stack and not unmapped since", f);
	}
}

void out_sentence(FILE *f, const struct row *row, const struct out_opts *o)
{
	s64 resident = of(row, COST_RESIDENT), reserved = of(row, COST_RESERVED);
	s64 grown = of(row, COST_GROWN), thp = of(row, COST_THP), swapped = of(row, COST_SWAPPED);
	s64 private = of(row, COST_PRIVATE);
	int anonymous = row->kind == ORIGIN_MMAP || row->kind == ORIGIN_BRK ||
			row->kind == ORIGIN_FAULT || row->kind == ORIGIN_PREEXISTING;

	if (row->cost[COST_RESIDENT].known)
		fprintf(f, "%s is resident: ", out_amount(o, resident));
	by_kind(f, row);
	if (grown > 0)
		fprintf(f, "; it grew by %s", out_amount(o, grown));
	if (row->cost[COST_RESERVED].known && reserved > resident && resident)
		fprintf(f, "; of %s reserved the rest is not in memory", out_amount(o, reserved));
	if (thp > resident / 2 && thp)
		fprintf(f, "; %s of it is in huge pages, which may hold more than was ever written",
			out_amount(o, thp));
	if (swapped)
		fprintf(f, "; %s more is in swap", out_amount(o, swapped));
	if (row->cost[COST_PRIVATE].known && private && anonymous)
		fprintf(f, "; unmapping it would free %s", out_amount(o, private));
	fputc('.', f);
}
