/* SPDX-License-Identifier: GPL-2.0-only
 * What is asked of the child that reads names, counted by a name_all() in its place: many spaces
 * that run one program, each at addresses of its own, ask no more than one does, and each of them
 * has its names. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "lib/capture/namer.h"
#include "lib/capture/symbolize.h"

#define SPACES	 300u
#define FRAMES	 20u
#define APART	 (1ull << 32) /* how far a space's program is from the next one's */
#define OFFSET_0 0x1000u

static int failed;
static size_t asked;
static int give_up;
static struct mp_ev_vma self; /* where this program's code is mapped */
static char path[4096];

/* By space and frame: how often it was named. */
static u32 named[SPACES][FRAMES];
static u32 strange; /* SYMBOL records of no frame, or with another offset */

static void check(const char *name, int good)
{
	printf("%s %s\n", good ? "ok" : "FAIL", name);
	failed |= !good;
}

int name_all(struct sym_files *files, const struct sym_spot *spots, size_t nr, const int *fds,
	     size_t nr_fds, name_fn fn, void *ctx)
{
	size_t i;
	int err = 0;

	(void)fds;
	(void)nr_fds;
	for (i = 0; i < nr && !err; i++) {
		struct sym_frame f = sym_place(files, &spots[i]);
		char name[32];

		asked++;
		snprintf(name, sizeof(name), "at_%llx", (unsigned long long)spots[i].offset);
		f.function = name;
		err = fn(ctx, i, &f, 1, MP_FRAME_HIDDEN, give_up);
	}
	return err;
}

static u64 base_of(u32 space)
{
	return 0x10000000 + space * APART;
}

static int keep(void *ctx, const struct mp_hdr *rec)
{
	const struct mp_ev_symbol *s = trace_body(rec, symbol);
	u64 off;

	(void)ctx;
	if (rec->type != MP_EV_SYMBOL)
		return 0;
	off = s->addr - base_of(rec->space) - OFFSET_0;
	if (rec->space >= SPACES || off % 16 || off / 16 >= FRAMES ||
	    s->offset != self.pgoff + OFFSET_0 + off)
		strange++;
	else
		named[rec->space][off / 16]++;
	return 0;
}

static int find_self(void)
{
	unsigned long long start, end, pgoff, ino;
	unsigned int maj, min;
	char line[4300], perm[8];
	int found = 0, at = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perm, &pgoff,
			   &maj, &min, &ino, &at) < 7 ||
		    perm[2] != 'x')
			continue;
		self = (struct mp_ev_vma){.start = start,
					  .end = end,
					  .pgoff = pgoff,
					  .ino = ino,
					  .dev = maj << 20 | min,
					  .flags = MP_VMA_EXEC};
		snprintf(path, sizeof(path), "%s", line + at);
		found = 1;
	}
	if (f)
		fclose(f);
	return found;
}

static int feed_space(struct symbolizer *k, u32 space)
{
	struct {
		struct mp_hdr hdr;
		union {
			struct mp_ev_space space;
			struct mp_ev_vma vma;
			struct {
				struct mp_ev_stack stack;
				u64 pc[FRAMES];
			};
		};
	} rec = {.hdr = {.type = MP_EV_SPACE, .space = space}};
	u64 len = self.end - self.start;
	int err;
	u32 i;

	rec.space.tgid = (u32)getpid();
	err = symbolizer_feed(k, &rec.hdr, NULL);
	rec.hdr.type = MP_EV_VMA;
	rec.vma = self;
	rec.vma.walk = 1;
	rec.vma.start = base_of(space);
	rec.vma.end = rec.vma.start + (len > 65536 ? len : 65536);
	if (!err)
		err = symbolizer_feed(k, &rec.hdr, path);
	rec.hdr.type = MP_EV_STACK;
	rec.stack = (struct mp_ev_stack){.id = space + 1, .n = FRAMES};
	for (i = 0; i < FRAMES; i++)
		rec.pc[i] = base_of(space) + OFFSET_0 + 16 * i;
	return err ? err : symbolizer_feed(k, &rec.hdr, NULL);
}

/* Asks for spaces [from, to) in one run of k. */
static int run(struct symbolizer *k, u32 from, u32 to, u64 *ret_unnamed)
{
	struct trace_writer *w = NULL;
	int err = trace_writer_sink(keep, NULL, &w);
	u32 i;

	asked = 0;
	memset(named, 0, sizeof(named));
	for (i = from; i < to && !err; i++)
		err = feed_space(k, i);
	if (!err)
		err = symbolizer_run(k, w, ret_unnamed);
	trace_writer_close(&w);
	return err;
}

static int all_named(u32 from, u32 to)
{
	u32 i, j;

	for (i = 0; i < SPACES; i++)
		for (j = 0; j < FRAMES; j++)
			if (named[i][j] != (i >= from && i < to))
				return 0;
	return !strange;
}

int main(void)
{
	struct symbolizer *k = NULL;
	u64 unnamed = 0;
	size_t one;

	if (!find_self() || symbolizer_new(&k))
		return 1;
	check("one space", !run(k, 0, 1, &unnamed) && all_named(0, 1) && !unnamed);
	one = asked;
	check("a place is asked for once", one == FRAMES);
	check("two hundred spaces", !run(k, 1, 201, &unnamed) && all_named(1, 201) && !unnamed);
	check("ask no more than one does", asked == one);
	give_up = 1;
	check("names given up on", !run(k, 201, SPACES, &unnamed) && all_named(201, SPACES));
	check("are counted by address", unnamed == (u64)(SPACES - 201) * FRAMES);
	symbolizer_free(&k);
	return failed;
}
