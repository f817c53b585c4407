/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/capture/inmate.h"
#include "lib/capture/tables.h"

#define FILE_MS	   10000 /* for one file */
#define PIPE_BYTES (1 << 20)

/* The pipe: for each file in order one head, then its cells. */
struct head {
	u32 file, has_table, nr_rules, nr_rows;
};

struct tables {
	int *fds;
	size_t nr, at; /* the next to come */
	struct inmate child;
	u64 until_ms;
	struct head head;
	size_t len; /* read of head and cells */
	u64 *cells;
};

static size_t cells_of(const struct head *h)
{
	return (size_t)h->nr_rules * MP_RULE_CELLS + h->nr_rows;
}

static int answer(void *ctx, int out)
{
	struct tables *t = ctx;
	int err = 0;

	for (; t->at < t->nr && !err; t->at++) {
		struct unwind_table table = {0};
		struct head h = {.file = (u32)t->at};

		h.has_table = !unwind_table_read(t->fds[t->at], &table);
		h.nr_rules = table.nr_rules;
		h.nr_rows = table.nr_rows;
		err = inmate_write(out, &h, sizeof(h));
		if (!err && h.has_table)
			err = inmate_write(out, table.cells, cells_of(&h) * sizeof(u64));
		unwind_table_release(&table);
	}
	return err;
}

static int start_child(struct tables *t)
{
	int err = inmate_start(&t->child, "memprov-tables", t->fds, t->nr, answer, t);

	if (err)
		return err;
	t->until_ms = now_ms() + FILE_MS;
	fcntl(t->child.pipe, F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(t->child.pipe, F_SETFL, O_NONBLOCK);
	return 0;
}

int tables_start(const int *fds, size_t nr, struct tables **ret_t)
{
	struct tables *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (t)
		t->fds = malloc((nr + 1) * sizeof(*fds));
	if (t && t->fds) {
		memcpy(t->fds, fds, nr * sizeof(*fds));
		t->nr = nr;
		err = start_child(t);
	}
	if (err)
		tables_free(&t);
	else
		*ret_t = t;
	return err;
}

static int good_head(const struct tables *t)
{
	const struct head *h = &t->head;

	return h->file == t->at && h->nr_rules <= MP_MAX_RULES && h->nr_rows <= MP_MAX_CELLS &&
	       cells_of(h) <= MP_MAX_CELLS && (h->has_table || !cells_of(h));
}

/* Reads as much of the record at hand as there is. 1: it is whole, 0: not yet, or -errno. */
static int read_some(struct tables *t)
{
	for (;;) {
		size_t want = sizeof(t->head);
		u8 *to = (u8 *)&t->head;
		ssize_t n;

		if (t->len >= sizeof(t->head)) {
			if (!good_head(t))
				return -EBADMSG;
			want += cells_of(&t->head) * sizeof(u64);
			if (t->len == want)
				return 1;
			if (!t->cells)
				t->cells = malloc(want);
			if (!t->cells)
				return -ENOMEM;
			to = (u8 *)t->cells - sizeof(t->head);
		}
		n = read(t->child.pipe, to + t->len, want - t->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return now_ms() < t->until_ms ? 0 : -ETIMEDOUT;
		if (n <= 0)
			return -EPIPE;
		t->len += (size_t)n;
		t->until_ms = now_ms() + FILE_MS;
	}
}

static int give(struct tables *t, table_fn fn, void *ctx)
{
	struct unwind_table table = {t->cells, t->head.nr_rules, t->head.nr_rows};
	int good = t->head.has_table && unwind_table_good(&table);
	int err = fn(ctx, t->at++, good ? &table : NULL);

	free(t->cells);
	t->cells = NULL;
	t->len = 0;
	return err;
}

int tables_read(struct tables *t, table_fn fn, void *ctx)
{
	int n, err = 0;

	while (t->at < t->nr && !err) {
		n = read_some(t);
		if (!n)
			return 1;
		if (n < 0) {
			/* The file is to blame; the others are read by another child. */
			inmate_end(&t->child);
			t->head.has_table = 0;
			err = give(t, fn, ctx);
			if (!err && t->at < t->nr)
				err = start_child(t);
			continue;
		}
		err = give(t, fn, ctx);
	}
	return err;
}

int tables_fd(const struct tables *t)
{
	return t->child.pid ? t->child.pipe : -1;
}

void tables_free(struct tables **t)
{
	if (!*t)
		return;
	inmate_end(&(*t)->child);
	free((*t)->cells);
	free((*t)->fds);
	free(*t);
	*t = NULL;
}
