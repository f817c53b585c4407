/* SPDX-License-Identifier: GPL-2.0-only
 * Groups and diff over rows made by hand: which frame is the program's own, and what may be paired.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/diff.h"

#define LIBC "/usr/lib/x86_64-linux-gnu/libc.so.6"
#define ROWS 6u

static int failed;

static void report(const char *name, int ok)
{
	printf("%s %s\n", ok ? "ok" : "FAIL", name);
	failed |= !ok;
}

static struct report *empty(void)
{
	struct report *r = calloc(1, sizeof(*r));

	if (!r || !(r->rows = calloc(ROWS, sizeof(*r->rows))))
		abort();
	r->has_walk = 1;
	return r;
}

static void gone(struct report *r)
{
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		free(r->rows[i].frames);
	free(r->rows);
	free(r);
}

/* A mapping of mmap < CALLER in a file, of so many exact and inferred bytes. */
static struct row *add(struct report *r, u32 pid, const char *caller, const char *module, s64 exact,
		       s64 inferred)
{
	struct row *row = &r->rows[r->nr_rows++];
	struct cost *c = &row->cost[COST_RESIDENT];

	row->kind = ORIGIN_MMAP;
	row->pid = row->space = pid;
	row->comm = "work";
	row->frames = calloc(3, sizeof(*row->frames));
	if (!row->frames)
		abort();
	row->nr_frames = 2;
	row->frames[0] = (struct frame){.addr = 1, .function = "__GI___mmap64", .module = LIBC};
	row->frames[1] = (struct frame){.addr = 2, .function = caller, .module = module};
	snprintf(row->id, sizeof(row->id), "%s", caller ? caller : "none");
	*c = (struct cost){
		.exact = exact, .inferred = inferred, .hi = exact + inferred, .known = 1};
	r->total[COST_RESIDENT].exact += exact;
	r->total[COST_RESIDENT].inferred += inferred;
	r->total[COST_RESIDENT].known = 1;
	return row;
}

static const struct row *named(const struct report *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].name && !strcmp(r->rows[i].name, name))
			return &r->rows[i];
	return NULL;
}

static int is(const struct row *row, s64 bytes)
{
	return row && cost_value(&row->cost[COST_RESIDENT]) == bytes;
}

static struct report *some(void)
{
	struct report *r = empty();

	add(r, 1, "cache_fill", "/opt/app", 3, 0);
	add(r, 2, "cache_fill", "/opt/app", 5, 0);
	add(r, 1, "pool_grow", "/opt/libpool.so.1", 7, 0);
	add(r, 1, "__libc_alloc", LIBC, 11, 0);
	add(r, 1, NULL, "/opt/stripped", 13, 0);
	return r;
}

static void groups(void)
{
	struct report *r = some();

	report("group_function_is_the_programs_own",
	       !join_group(r, "function") && r->nr_rows == 4 && is(named(r, "cache_fill"), 8) &&
		       is(named(r, "pool_grow"), 7) && is(named(r, "__GI___mmap64"), 11) &&
		       is(named(r, "/opt/stripped"), 13));
	report("a_row_of_two_processes_has_no_pid", named(r, "cache_fill")->several &&
							    !named(r, "cache_fill")->pid &&
							    named(r, "pool_grow")->pid == 1);
	gone(r);
	r = some();
	report("group_file_is_the_file_of_that_function",
	       !join_group(r, "file") && r->nr_rows == 4 && is(named(r, "/opt/app"), 8) &&
		       is(named(r, LIBC), 11));
	gone(r);
	r = some();
	report("group_mapping_is_what_is_mapped",
	       !join_group(r, "mapping") && r->nr_rows == 1 && is(named(r, "[anon]"), 39));
	gone(r);
	r = some();
	report("group_process", !join_group(r, "process") && r->nr_rows == 2 &&
					is(&r->rows[0], 34) && is(&r->rows[1], 5) &&
					r->rows[0].kind == ORIGIN_PROCESS);
	gone(r);
	r = some();
	report("stacks_of_two_processes_stay_two",
	       !join_group(r, "stack") && r->nr_rows == 5 && join_is_many(r));
	report("no_such_group", join_group(r, "colour") < 0);
	gone(r);
}

static void ties(void)
{
	struct report *r = empty();

	add(r, 1, "b", "/opt/app", 3, 0);
	add(r, 1, "c", "/opt/app", 3, 0);
	add(r, 1, "a", "/opt/app", 9, 0);
	join_sort(r, COST_GROWN);
	report("ties_go_by_resident_then_name", !strcmp(r->rows[0].id, "a") &&
							!strcmp(r->rows[1].id, "b") &&
							!strcmp(r->rows[2].id, "c"));
	gone(r);
}

/* The match of the row that calls itself so. */
static const struct diff_row *change(const struct diff *d, const char *id)
{
	size_t i;

	for (i = 0; i < d->nr_rows; i++)
		if (!strcmp(d->rows[i].row->id, id))
			return &d->rows[i];
	return NULL;
}

static void matches(void)
{
	struct report *b = empty(), *n = empty();
	const struct diff_row *row;
	struct diff *d = NULL;
	struct row *x;

	/* Another C program: all they have in common is mmap. */
	add(b, 1, "arena_new", "/usr/bin/python3", 100, 0);
	add(n, 1, "grow_it", "/opt/app", 200, 0);
	/* The same function of the next release, called from elsewhere. */
	x = add(b, 1, "pool_grow", "/opt/1/libpool.so.1.2", 10, 0);
	x->frames[x->nr_frames++] = (struct frame){.addr = 3, .function = "old_caller"};
	x = add(n, 1, "pool_grow", "/opt/2/libpool.so.1.3", 30, 0);
	x->frames[x->nr_frames++] = (struct frame){.addr = 3, .function = "new_caller"};
	/* Plumbing alone pairs nothing. */
	x = add(b, 1, "__libc_a", LIBC, 1000, 0);
	x = add(n, 1, "__libc_b", LIBC, 2000, 0);
	(void)x;
	report("diff", !diff_new(b, n, COST_RESIDENT, &d));
	if (!d)
		return;
	row = change(d, "arena_new");
	report("mmap_alone_is_no_match", row && row->match == DIFF_GONE && row->delta == -100);
	row = change(d, "grow_it");
	report("a_new_program_is_new", row && row->match == DIFF_NEW && row->delta == 200);
	row = change(d, "pool_grow");
	report("the_same_function_of_a_file_matches",
	       row && row->match == DIFF_FUNCTION && row->delta == 20);
	row = change(d, "__libc_b");
	report("plumbing_pairs_nothing", row && row->match == DIFF_NEW);
	diff_free(&d);
	gone(b);
	gone(n);
}

/* Only whose it is is inferred: that it grew is sure. */
static void significance(void)
{
	struct report *b = empty(), *n = empty();
	struct diff *d = NULL;

	add(b, 1, "arena", "/opt/app", 0, 100)->cost[COST_RESIDENT].counted = 100;
	add(n, 1, "arena", "/opt/app", 0, 300)->cost[COST_RESIDENT].counted = 300;
	add(b, 1, "fault", "/opt/app", 0, 100);
	add(n, 1, "fault", "/opt/app", 0, 300);
	report("diff", !diff_new(b, n, COST_RESIDENT, &d));
	if (!d)
		return;
	report("what_was_counted_is_judged", change(d, "arena")->significant);
	report("what_was_not_is_not", !change(d, "fault")->significant);
	diff_free(&d);
	gone(b);
	gone(n);
}

int main(void)
{
	groups();
	ties();
	matches();
	significance();
	return failed;
}
