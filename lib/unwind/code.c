/* SPDX-License-Identifier: GPL-2.0-only
 * Each function is followed from its first instruction, where the return address is on top of the
 * stack, along all branches. What an instruction that cannot be understood leads to has no rule. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/unwind/code.h"
#include "lib/unwind/insn.h"

#define MAX_TEXT   (128ull << 20)
#define REG_BP	   5 /* as instructions number it */
#define MAX_CALLER (16ull << 20) /* code with tables that is searched for calls */

enum { CALLED = 1, ENTRY = 2 };

/* What is known at an instruction. */
struct frame {
	s32 sp_off; /* CFA - sp */
	s32 bp_off; /* CFA - bp */
	s32 bp_at; /* the caller's bp lies at CFA + bp_at */
	u8 has_sp, has_bp, bp_saved, is_last;
};

struct todo {
	u64 at;
	struct frame f;
};

struct code {
	struct builder *b;
	struct segment s;
	const u8 *text;
	int is_fixed;
	u32 *known; /* by offset: number of a frame + 1; 0 not reached */
	u8 *starts; /* a function begins here */
	struct frame *frames;
	size_t nr_frames, cap_frames;
	struct todo *todo;
	size_t nr_todo, cap_todo;
	struct todo *jumps; /* behind jumps to where only the program knows */
	size_t nr_jumps, cap_jumps;
};

static int grow(void *items, size_t nr, size_t *cap, size_t size)
{
	void **at = items, *more;

	if (nr < *cap)
		return 0;
	more = reallocarray(*at, *cap ? *cap * 2 : 256, size);
	if (!more)
		return -ENOMEM;
	*at = more;
	*cap = *cap ? *cap * 2 : 256;
	return 0;
}

int code_open(struct builder *b, const struct segment *s, const u8 *text, int is_fixed,
	      struct code **ret_c)
{
	struct code *c = calloc(1, sizeof(*c));

	*ret_c = c;
	if (!c)
		return -ENOMEM;
	c->b = b;
	c->s = *s;
	c->text = text;
	c->is_fixed = is_fixed;
	if (s->len > MAX_TEXT)
		c->s.len = 0;
	c->known = calloc(c->s.len + 1, sizeof(*c->known));
	c->starts = calloc(c->s.len + 1, 1);
	if (!c->known || !c->starts) {
		code_close(ret_c);
		return -ENOMEM;
	}
	return 0;
}

void code_close(struct code **c)
{
	if (!*c)
		return;
	free((*c)->known);
	free((*c)->starts);
	free((*c)->frames);
	free((*c)->todo);
	free((*c)->jumps);
	free(*c);
	*c = NULL;
}

static const struct frame *frame_at(const struct code *c, u64 at)
{
	return c->known[at] ? &c->frames[c->known[at] - 1] : NULL;
}

static int same_frame(const struct frame *a, const struct frame *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static int put_todo(struct code *c, u64 at, const struct frame *f)
{
	if (at >= c->s.len || (c->known[at] && same_frame(frame_at(c, at), f)))
		return 0;
	if (grow(&c->todo, c->nr_todo, &c->cap_todo, sizeof(*c->todo)))
		return -ENOMEM;
	c->todo[c->nr_todo++] = (struct todo){at, *f};
	return 0;
}

static int add_start(struct code *c, u64 at, int is_entry)
{
	const struct frame f = {.sp_off = 8, .has_sp = 1, .is_last = (u8)is_entry};

	if (at >= c->s.len || c->starts[at] || builder_covers(c->b, c->s.offset + at))
		return 0;
	c->starts[at] = is_entry ? ENTRY : CALLED;
	return put_todo(c, at, &f);
}

int code_add_function(struct code *c, u64 vaddr, int is_entry)
{
	return vaddr < c->s.vaddr ? 0 : add_start(c, vaddr - c->s.vaddr, is_entry);
}

/* Code whose address is taken is called by it. Numbers are addresses where programs are not moved.
 */
static int add_address(struct code *c, const struct insn *i)
{
	if (!i->is_number)
		return add_start(c, i->address, 0);
	return c->is_fixed ? code_add_function(c, i->address, 0) : 0;
}

static int note_frame(struct code *c, u64 at, const struct frame *f)
{
	if (!c->nr_frames || !same_frame(&c->frames[c->nr_frames - 1], f)) {
		if (grow(&c->frames, c->nr_frames, &c->cap_frames, sizeof(*c->frames)))
			return -ENOMEM;
		c->frames[c->nr_frames++] = *f;
	}
	c->known[at] = (u32)c->nr_frames;
	return 0;
}

static void lose_sp(struct frame *f)
{
	f->has_sp = 0;
	f->sp_off = 0;
}

static void apply(struct frame *f, const struct insn *i)
{
	s64 off = f->sp_off;

	switch (i->kind) {
	case INSN_PUSH:
		off += i->value;
		if (i->reg == REG_BP && !f->bp_saved && !f->has_bp && off <= 32767) {
			f->bp_saved = 1;
			f->bp_at = (s32)-off;
		}
		break;
	case INSN_POP:
		off -= i->value;
		if (i->reg == REG_BP)
			f->bp_saved = f->has_bp = 0, f->bp_at = f->bp_off = 0;
		break;
	case INSN_ADD_SP:
		off -= i->value;
		break;
	case INSN_BP_FROM_SP:
		if (f->has_sp && f->bp_saved) {
			f->has_bp = 1;
			f->bp_off = f->sp_off;
		}
		return;
	case INSN_SP_FROM_BP:
	case INSN_LEAVE:
		if (!f->has_bp) {
			lose_sp(f);
			return;
		}
		f->has_sp = 1;
		off = f->bp_off - i->value;
		if (i->kind == INSN_LEAVE) {
			off -= 8;
			f->bp_saved = f->has_bp = 0;
			f->bp_at = f->bp_off = 0;
		}
		break;
	case INSN_BP_ZERO: /* by convention where a thread begins: it saves nothing */
		f->is_last |= !f->bp_saved;
		return;
	case INSN_SP_LOST:
		lose_sp(f);
		return;
	default:
		return;
	}
	/* Less than the return address cannot be on the stack. */
	if (off < 0 || off > 1 << 24)
		lose_sp(f);
	else if (f->has_sp)
		f->sp_off = (s32)off;
}

static const struct frame lost;

/* A call that does not return is not known as such: behind it another function may begin. */
static int runs_into_function(const struct code *c, u64 at, const struct frame *f)
{
	return c->starts[at] && !(f->has_sp && f->sp_off == 8);
}

/* May the path go on here? Where another one came with another frame neither is to be believed, nor
 * what follows. */
static int meets(const struct code *c, u64 at, struct frame *f)
{
	const struct frame *other = frame_at(c, at);

	if (!other)
		return 1;
	if (same_frame(other, &lost) || same_frame(other, f))
		return 0;
	*f = lost;
	return 1;
}

/* Follows one path until it ends, joins another one, or comes to where tables speak. */
static int follow(struct code *c, u64 at, struct frame f)
{
	u64 first = at;
	struct insn i;
	int err = 0;

	while (!err && at < c->s.len && !builder_covers(c->b, c->s.offset + at) &&
	       (at == first || !runs_into_function(c, at, &f)) && meets(c, at, &f) &&
	       insn_read(c->text, c->s.len, at, &i)) {
		err = note_frame(c, at, &f);
		at += i.len;
		if (!err && i.kind == INSN_CALL && !i.reg)
			err = add_start(c, i.target, 0);
		if (!err && i.address)
			err = add_address(c, &i);
		if (!err && i.kind == INSN_BRANCH)
			err = put_todo(c, i.target, &f);
		if (i.kind == INSN_END)
			break;
		if (i.kind == INSN_JUMP && !i.reg) {
			at = first = i.target;
			if (at < c->s.len && runs_into_function(c, at, &f))
				break;
			continue;
		}
		if (!err && i.kind == INSN_JUMP) {
			if (grow(&c->jumps, c->nr_jumps, &c->cap_jumps, sizeof(*c->jumps)))
				return -ENOMEM;
			c->jumps[c->nr_jumps++] = (struct todo){at, f};
			break;
		}
		apply(&f, &i);
	}
	return err;
}

static int follow_all(struct code *c)
{
	int err = 0;

	while (c->nr_todo && !err) {
		const struct todo t = c->todo[--c->nr_todo];

		err = follow(c, t.at, t.f);
	}
	return err;
}

/* Nothing comes here and it does nothing: the next function is aligned. */
static int is_padding(const struct code *c, u64 at)
{
	const u8 *p = c->text + at;

	return !c->known[at] && (*p == 0x90 || *p == 0xcc ||
				 (*p == 0x66 && c->s.len - at > 1 &&
				  (p[1] == 0x90 || p[1] == 0x0f || p[1] == 0x66 || p[1] == 0x2e)) ||
				 (*p == 0x0f && c->s.len - at > 1 && p[1] == 0x1f));
}

/* The cases of a switch stand behind its jump, under the same frame; each that ends in a return is
 * followed by the next one. */
static int follow_switches(struct code *c)
{
	size_t i;
	int err = 0;

	for (i = 0; i < c->nr_jumps && !err; i++) {
		struct todo t = c->jumps[i];

		if (t.f.has_sp && t.f.sp_off == 8)
			continue; /* called in place of a return */
		for (; t.at < c->s.len && !c->starts[t.at] && !is_padding(c, t.at) && !err;
		     t.at++) {
			if (c->known[t.at] || builder_covers(c->b, c->s.offset + t.at)) {
				struct insn in;

				if (!c->known[t.at] || !insn_read(c->text, c->s.len, t.at, &in))
					break;
				t.at += in.len - 1u;
				continue;
			}
			err = put_todo(c, t.at, &t.f);
			if (!err)
				err = follow_all(c);
			if (!c->known[t.at])
				break;
			t.at--;
		}
	}
	return err;
}

/* Calls out of code that has tables. Its rows begin where instructions do. */
static int search_calls(struct code *c)
{
	const struct pieces *p = &c->b->pieces[FROM_EH_FRAME];
	u64 end = c->s.offset + c->s.len, at;
	struct insn i;
	size_t n;
	int err = 0;

	for (n = 0; n < p->nr && !err; n++) {
		if (p->p[n].start < c->s.offset || p->p[n].end > end)
			continue;
		for (at = p->p[n].start; at < p->p[n].end && !err; at += i.len) {
			if (!insn_read(c->text, c->s.len, at - c->s.offset, &i))
				break;
			if ((i.kind == INSN_CALL || i.kind == INSN_JUMP) && !i.reg)
				err = add_start(c, i.target, 0);
			if (!err && i.address)
				err = add_address(c, &i);
		}
	}
	return err;
}

static int put_rules(struct code *c)
{
	struct insn i;
	u64 at;
	int err = 0;

	for (at = 0; at < c->s.len && !err;) {
		const struct frame *f = frame_at(c, at);
		struct mp_rule r = {.ra_off = -8, .flags = MP_RULE_BY_CODE | MP_RULE_BX_GONE};

		if (!f || !insn_read(c->text, c->s.len, at, &i)) {
			at++;
			continue;
		}
		r.cfa = f->is_last ? MP_CFA_LAST : f->has_sp ? MP_CFA_SP : MP_CFA_BP;
		r.cfa_off = f->is_last ? 0 : f->has_sp ? f->sp_off : f->bp_off;
		if (f->bp_saved) {
			r.bp = MP_BP_CFA;
			r.bp_off = (s16)f->bp_at;
		}
		if (f->is_last || f->has_sp || f->has_bp)
			err = builder_put(c->b, c->s.offset + at, c->s.offset + at + i.len, &r);
		at += i.len;
	}
	return err;
}

/* Once more, with all functions known that were found on the way. */
static int restart(struct code *c)
{
	const struct frame f = {.sp_off = 8, .has_sp = 1};
	u64 at;
	int err = 0;

	memset(c->known, 0, c->s.len * sizeof(*c->known));
	c->nr_frames = c->nr_jumps = 0;
	for (at = 0; at < c->s.len && !err; at++) {
		struct frame first = f;

		first.is_last = c->starts[at] == ENTRY;
		if (c->starts[at])
			err = put_todo(c, at, &first);
	}
	return err;
}

static int pass(struct code *c)
{
	int err = follow_all(c);

	return err ? err : follow_switches(c);
}

int code_read(struct code *c)
{
	int err = c->s.len <= MAX_CALLER ? search_calls(c) : 0;

	if (!err)
		err = pass(c);
	if (!err)
		err = restart(c);
	if (!err)
		err = pass(c);
	return err ? err : put_rules(c);
}
