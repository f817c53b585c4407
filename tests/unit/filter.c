/* SPDX-License-Identifier: GPL-2.0-only
 * Filters and evidence over rows made by hand. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/filter.h"

static int failed;

static struct frame frames[] = {
	{.addr = 1, .function = "mmap", .module = "/usr/lib/libc.so.6"},
	{.addr = 2, .function = "operator new(unsigned long)", .module = "/usr/lib/libstdc++.so.6"},
	{.addr = 3, .function = "cache_fill", .module = "/opt/app", .file = "src/cache.c"},
	{.addr = 4, .module = "/opt/app"},
};

static struct row one(void)
{
	struct row row = {.kind = ORIGIN_MMAP,
			  .pid = 42,
			  .comm = "app",
			  .frames = frames,
			  .nr_frames = sizeof(frames) / sizeof(frames[0]),
			  .id = "00ff"};

	row.cost[COST_RESIDENT] = (struct cost){.exact = 5 << 20, .inferred = 1 << 20, .known = 1};
	row.cost[COST_STALL] = (struct cost){.inferred = 7000000, .known = 1};
	row.cost[COST_GROWN] = (struct cost){.exact = -4096, .known = 1};
	return row;
}

static struct row other(void)
{
	struct row row = {.kind = ORIGIN_FILE, .name = "/var/a file (old)", .id = "01"};

	row.cost[COST_RESIDENT] = (struct cost){.exact = 4096, .known = 1};
	return row;
}

/* want: bit 0 for one(), bit 1 for other(); -1: it is malformed. */
static void matches(const char *text, int want)
{
	struct row a = one(), b = other();
	struct filter *f = NULL;
	char msg[256] = "";
	int err = filter_parse(text, &f, msg, sizeof(msg)), got;

	got = err ? -1 : filter_match(f, &a) | filter_match(f, &b) << 1;
	/* What is wrong has words. */
	if (got != want || (err && !msg[0])) {
		printf("FAIL '%s': %d, not %d %s\n", text, got, want, msg);
		failed = 1;
	} else {
		printf("ok '%s'\n", text);
	}
	filter_free(&f);
}

static void expressions(void)
{
	static const struct {
		const char *text;
		int want;
	} all[] = {
		{"kind=mmap", 1},
		{"KIND = file", 2},
		{"kind != mmap", 2},
		{"resident > 1M", 1},
		{"resident>=6MiB", 1},
		{"resident > 6291455", 1},
		{"resident > 6M", 0},
		{"resident <= 4096", 2},
		{"resident = 4K", 2},
		{"stall >= 7ms", 1},
		{"stall < 7ms", 0},
		/* Unknown is neither. */
		{"stall != 1", 1},
		{"not stall > 0", 2},
		{"grown < 0", 1},
		{"function = cache_fill", 1},
		{"function ~ ^cache_", 1},
		{"function = 'operator new(unsigned long)'", 1},
		{"function !~ cache", 2},
		{"name = cache_fill", 1},
		{"name ~ '\\(old\\)$'", 2},
		{"file = /opt/app", 1},
		{"file = src/cache.c", 1},
		{"file ~ ^/var/", 2},
		{"process = app and pid = 42", 1},
		{"pid = 0", 0},
		{"id=01", 2},
		{"kind=mmap or kind=file", 3},
		{"kind=mmap and kind=file or id=01", 2},
		{"kind=mmap and (kind=file or id=00ff)", 1},
		{"not (kind=mmap or kind=stack)", 2},
		{"not not kind=mmap && resident > 0", 1},
		{"", -1},
		{"resident", -1},
		{"resident >", -1},
		{"resident > x", -1},
		{"resident > 1Q", -1},
		{"resident > 1ms", -1},
		{"resident > nan", -1},
		{"resident ~ 1", -1},
		{"kind < mmap", -1},
		{"nosuch = 1", -1},
		{"(kind=mmap", -1},
		{"kind=mmap)", -1},
		{"kind=mmap kind=file", -1},
		{"kind=mmap and", -1},
		{"not", -1},
		{"name ~ '('", -1},
		{"name = 'open", -1},
		{"= 3", -1},
	};
	char deep[4096];
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		matches(all[i].text, all[i].want);
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	matches(deep, -1);
}

static void keeps(const char *grade, s64 resident, int stall_known)
{
	struct row row = one();
	struct report r = {.rows = &row, .nr_rows = 1};
	const struct cost *c = &row.cost[COST_RESIDENT];
	enum evidence weakest;
	int ok = !evidence_parse(grade, &weakest);

	evidence_keep(&r, weakest);
	ok = ok && cost_value(c) == resident && row.cost[COST_STALL].known == stall_known &&
	     cost_value(&row.cost[COST_GROWN]) == -4096;
	if (!strcmp(grade, "exact"))
		ok = ok && !cost_is_open(c) && cost_lo(c) == resident && cost_hi(c) == resident;
	printf("%s evidence %s\n", ok ? "ok" : "FAIL", grade);
	failed |= !ok;
}

int main(void)
{
	enum evidence none;

	expressions();
	keeps("exact", 5 << 20, 0);
	keeps("inferred", 6 << 20, 1);
	keeps("sampled", 6 << 20, 1);
	failed |= evidence_parse("sure", &none) == 0;
	return failed;
}
