/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/capture/copies.h"
#include "lib/capture/inmate.h"
#include "lib/sym/walk.h"

#define MAX_COPIES   32768
#define MAX_CHILDREN 4
#define COPY_MS	     10000 /* the first of a space included: its files are read */
#define ALL_MS	     60000

/* The pipe: for each copy in order this, then n addresses. */
struct answer {
	u32 copy, n, end, reserved;
};

struct work {
	struct copies *c;
	size_t at;
};

int copy_is(const struct mp_ev_stack *ev)
{
	return ev->raw > MP_COPY_REGS;
}

int copies_add(struct copies *c, const struct mp_hdr *rec)
{
	struct copy *more;
	size_t cap = c->cap ? c->cap * 2 : 64;

	if (c->nr == MAX_COPIES) {
		c->left_out++;
		return 0;
	}
	if (c->nr == c->cap) {
		more = reallocarray(c->items, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->items = more;
		c->cap = cap;
	}
	c->items[c->nr] = (struct copy){.rec = malloc(rec->size)};
	if (!c->items[c->nr].rec)
		return -ENOMEM;
	memcpy(c->items[c->nr++].rec, rec, rec->size);
	return 0;
}

void copies_clear(struct copies *c)
{
	size_t i;

	for (i = 0; i < c->nr; i++)
		free(c->items[i].rec);
	free(c->items);
	memset(c, 0, sizeof(*c));
}

/* Where struct user_regs_struct has them, by DWARF number. */
static void read_copy(const struct mp_hdr *rec, struct sym_copy *ret)
{
	static const u8 at[SYM_WALK_REGS] = {10, 12, 11, 5, 13, 14, 4, 19, 9,
					     8,	 7,  6,	 3, 2,	1,  0, 16};
	const struct mp_ev_stack *ev = (const struct mp_ev_stack *)(rec + 1);
	const u64 *regs = (const u64 *)(ev + 1) + ev->n;
	int i;

	for (i = 0; i < SYM_WALK_REGS; i++)
		ret->regs[i] = regs[at[i]];
	ret->stack = (const u8 *)regs + MP_COPY_REGS;
	ret->len = ev->raw - MP_COPY_REGS;
}

/* The child. Answers before it looks at the next one: we know by that which stopped it. */
static int answer_all(void *ctx, int out)
{
	struct work *k = ctx;
	struct sym_walker *w = NULL;
	const struct sym_space *of = NULL;
	u64 pc[MP_STACK_DEPTH];
	int err = 0;

	for (; k->at < k->c->nr && !err; k->at++) {
		const struct copy *i = &k->c->items[k->at];
		struct answer a = {.copy = (u32)k->at, .end = MP_STACK_CUT};
		struct sym_copy copy;

		if (i->space != of) {
			sym_walker_free(&w);
			of = i->space;
			if (of)
				sym_walker_new(of, &w);
		}
		read_copy(i->rec, &copy);
		if (w)
			a.n = sym_walk(w, &copy, pc, MP_STACK_DEPTH, &a.end);
		err = inmate_write(out, &a, sizeof(a));
		if (!err)
			err = inmate_write(out, pc, a.n * sizeof(*pc));
	}
	return err;
}

/* Reads the answer to copy number at. */
static int next_answer(const struct inmate *p, size_t at, u64 until, struct answer *ret, u64 *pc)
{
	int err = inmate_read(p, ret, sizeof(*ret), until);

	if (!err && (ret->copy != at || ret->n > MP_STACK_DEPTH || ret->end > MP_STACK_CUT))
		err = -EBADMSG;
	return err ? err : inmate_read(p, pc, ret->n * sizeof(*pc), until);
}

static int by_space(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	if (x->rec->space != y->rec->space)
		return x->rec->space < y->rec->space ? -1 : 1;
	return x->rec->seq < y->rec->seq ? -1 : x->rec->seq > y->rec->seq;
}

int copies_unwind(struct copies *c, const int *fds, size_t nr_fds,
		  int (*fn)(void *ctx, const struct mp_hdr *rec, const u64 *pc, u32 n, u32 end),
		  void *ctx)
{
	struct work k = {.c = c};
	struct inmate p = {0};
	u64 until = now_ms() + ALL_MS, pc[MP_STACK_DEPTH];
	int children = 0, err = 0;
	struct answer a;
	size_t at = 0;

	if (c->nr)
		qsort(c->items, c->nr, sizeof(*c->items), by_space);
	while (at < c->nr && !err && children++ < MAX_CHILDREN && now_ms() < until) {
		k.at = at;
		if (inmate_start(&p, "memprov-stacks", fds, nr_fds, answer_all, &k))
			break;
		for (; at < c->nr && !err; at++) {
			if (next_answer(&p, at, now_ms() + COPY_MS, &a, pc))
				break;
			if (a.n)
				err = fn(ctx, c->items[at].rec, pc, a.n, a.end);
		}
		inmate_end(&p);
		at++; /* it was to blame */
	}
	return err;
}
