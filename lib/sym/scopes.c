/* SPDX-License-Identifier: GPL-2.0-only */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/sym/scopes.h"

#define MAX_NESTING 64
#define MAX_SPANS   (16u << 20) /* of a unit */

struct span {
	Dwarf_Addr start, end;
	Dwarf_Off die;
};

struct unit {
	struct unit *next;
	Dwarf_Off cu;
	struct span *spans;
	size_t nr, cap;
};

struct scopes {
	struct unit *units;
};

void scopes_free(struct scopes **s)
{
	struct unit *u;

	if (!*s)
		return;
	while ((u = (*s)->units)) {
		(*s)->units = u->next;
		free(u->spans);
		free(u);
	}
	free(*s);
	*s = NULL;
}

static int add_span(struct unit *u, const struct span *span)
{
	size_t cap = u->cap ? u->cap * 2 : 64;
	struct span *spans;

	if (u->nr == MAX_SPANS)
		return 0;
	if (u->nr == u->cap) {
		spans = reallocarray(u->spans, cap, sizeof(*spans));
		if (!spans)
			return -ENOMEM;
		u->spans = spans;
		u->cap = cap;
	}
	u->spans[u->nr++] = *span;
	return 0;
}

static int add_function(struct unit *u, Dwarf_Die *die)
{
	struct span span = {.die = dwarf_dieoffset(die)};
	Dwarf_Addr base;
	ptrdiff_t at = 0;
	int err = 0;

	while (!err && (at = dwarf_ranges(die, at, &base, &span.start, &span.end)) > 0)
		if (span.start < span.end)
			err = add_span(u, &span);
	return err;
}

static int may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
	case DW_TAG_subprogram: /* of GNU C, Pascal and Rust */
	case DW_TAG_lexical_block:
		return 1;
	default:
		return 0;
	}
}

static int add_functions(struct unit *u, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;
	int err = 0, tag;

	if (depth == MAX_NESTING || dwarf_child(parent, &die))
		return 0;
	do {
		tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram)
			err = add_function(u, &die);
		if (!err && may_hold_functions(tag))
			err = add_functions(u, &die, depth + 1);
	} while (!err && !dwarf_siblingof(&die, &die));
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

static int unit_of(struct scopes *s, Dwarf_Die *cu, struct unit **ret_u)
{
	Dwarf_Off off = dwarf_dieoffset(cu);
	struct unit *u;
	int err;

	for (u = s->units; u && u->cu != off; u = u->next)
		;
	*ret_u = u;
	if (u)
		return 0;
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->cu = off;
	u->next = s->units;
	s->units = u;
	err = add_functions(u, cu, 0);
	if (u->nr)
		qsort(u->spans, u->nr, sizeof(*u->spans), by_start);
	*ret_u = u;
	return err;
}

static const struct span *find_span(const struct unit *u, Dwarf_Addr pc)
{
	size_t lo = 0, hi = u->nr, i;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (u->spans[mid].start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* One function inside another is rare: a few steps back. */
	for (i = 0; i < 8 && i < lo; i++)
		if (pc < u->spans[lo - 1 - i].end)
			return &u->spans[lo - 1 - i];
	return NULL;
}

/* Where to look on, below die: 1 and *ret_die. */
static int inner(Dwarf_Die *die, Dwarf_Addr pc, Dwarf_Die *ret_die)
{
	Dwarf_Die child;
	int tag;

	if (dwarf_child(die, &child))
		return 0;
	do {
		tag = dwarf_tag(&child);
		if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&child, pc) > 0) {
			*ret_die = child;
			return 1;
		}
	} while (!dwarf_siblingof(&child, &child));
	return 0;
}

int scopes_at(struct scopes **s, Dwarf_Die *cu, Dwarf_Addr pc, Dwarf_Die *ret, int max)
{
	const struct span *span;
	Dwarf_Die die, next;
	Dwarf_CU *dwarf_cu = cu->cu;
	struct unit *u;
	int err, n = 0, depth;

	if (!*s)
		*s = calloc(1, sizeof(**s));
	if (!*s)
		return -ENOMEM;
	err = unit_of(*s, cu, &u);
	if (err)
		return err;
	span = find_span(u, pc);
	if (!span || !dwarf_offdie(dwarf_cu_getdwarf(dwarf_cu), span->die, &die))
		return 0;
	ret[n++] = die;
	for (depth = 0; depth < 4 * MAX_NESTING && n < max && inner(&die, pc, &next); depth++) {
		die = next;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
			ret[n++] = die;
	}
	return n;
}
