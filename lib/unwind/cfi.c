/* SPDX-License-Identifier: GPL-2.0-only
 * An interpreter of call frame instructions that keeps what the unwinder can use: the CFA, and
 * where the return address and the caller's rbp were saved. libdw has one too, but is asked address
 * by address: a hundred times slower for a whole file. A test compares the two. */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include "lib/unwind/cfi.h"
#include "lib/unwind/reader.h"
#include "lib/unwind/rule.h"

#define MAX_REMEMBERED 16

struct cie {
	size_t at; /* in the section */
	struct reader code;
	u64 code_align;
	s64 data_align;
	u8 encoding; /* of the addresses in an FDE */
	u8 has_augmentation, is_signal, good;
};

struct fde {
	u64 start, end;
	u32 cie, order;
	struct reader code;
};

struct cfi {
	const struct cfi_section *sec;
	struct cie *cies;
	size_t nr_cies, cap_cies;
	struct fde *fdes;
	size_t nr_fdes, cap_fdes;
	u64 done; /* rows were given up to here */
	cfi_row_fn fn;
	void *ctx;
};

/* ---- CIEs and FDEs ---- */

static const u8 *section_end(const struct cfi *c)
{
	return c->sec->data + c->sec->len;
}

/* An address as the encoding has it; 0 when it is relative to what we do not know. */
static u64 read_encoded(const struct cfi *c, struct reader *r, u8 encoding, int *ret_known)
{
	u64 at = c->sec->vaddr + (u64)(r->p - c->sec->data), v;

	*ret_known = 1;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		v = read_uint(r, 8);
		break;
	case DW_EH_PE_udata2:
		v = read_uint(r, 2);
		break;
	case DW_EH_PE_udata4:
		v = read_uint(r, 4);
		break;
	case DW_EH_PE_sdata2:
		v = (u64)read_sint(r, 2);
		break;
	case DW_EH_PE_sdata4:
		v = (u64)read_sint(r, 4);
		break;
	case DW_EH_PE_uleb128:
		v = read_uleb(r);
		break;
	case DW_EH_PE_sleb128:
		v = (u64)read_sleb(r);
		break;
	default:
		*ret_known = 0;
		return 0;
	}
	switch (encoding & 0xf0) {
	case 0:
		return v;
	case DW_EH_PE_pcrel:
		return at + v;
	default:
		*ret_known = 0;
		return 0;
	}
}

static void read_augmentation(const struct cfi *c, struct cie *cie, struct reader *r,
			      const char *letters)
{
	u64 len = read_uleb(r);
	struct reader body = *r;
	int known;

	skip(r, len);
	body.end = r->p;
	for (letters++; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = (u8)read_uint(&body, 1);
			break;
		case 'P':
			read_encoded(c, &body, (u8)read_uint(&body, 1), &known);
			break;
		case 'L':
			read_uint(&body, 1);
			break;
		case 'S':
			cie->is_signal = 1;
			break;
		default: /* the length says where the code begins all the same */
			return;
		}
	}
}

/* r: behind the CIE's id. */
static void read_cie(const struct cfi *c, struct cie *cie, struct reader *r)
{
	u8 version = (u8)read_uint(r, 1);
	const char *letters = (const char *)r->p;

	while (read_uint(r, 1))
		;
	if (r->bad || (version != 1 && version != 3 && version != 4))
		return;
	if (version == 4 && (read_uint(r, 1) != 8 || read_uint(r, 1))) /* address, segment size */
		return;
	cie->code_align = read_uleb(r);
	cie->data_align = read_sleb(r);
	if ((version == 1 ? read_uint(r, 1) : read_uleb(r)) != MP_DW_RA)
		return;
	cie->has_augmentation = *letters == 'z';
	if (*letters && !cie->has_augmentation)
		return;
	if (cie->has_augmentation)
		read_augmentation(c, cie, r, letters);
	cie->code = *r;
	cie->good = !r->bad;
}

static int grow(void *items, size_t nr, size_t *cap, size_t size)
{
	void **at = items, *more;

	if (nr < *cap)
		return 0;
	more = reallocarray(*at, *cap ? *cap * 2 : 64, size);
	if (!more)
		return -ENOMEM;
	*at = more;
	*cap = *cap ? *cap * 2 : 64;
	return 0;
}

/* The number of the CIE at an offset of the section, or -1, or -ENOMEM. The one used last is the
 * one used next in nearly all files. */
static s64 find_cie(struct cfi *c, size_t at)
{
	struct reader r = {c->sec->data + at, section_end(c), 0};
	struct cie *cie;
	size_t i;
	u64 len;

	for (i = c->nr_cies; i-- > 0;)
		if (c->cies[i].at == at)
			return c->cies[i].good ? (s64)i : -1;
	if (grow(&c->cies, c->nr_cies, &c->cap_cies, sizeof(*c->cies)))
		return -ENOMEM;
	cie = &c->cies[c->nr_cies++];
	memset(cie, 0, sizeof(*cie));
	cie->at = at;
	len = read_uint(&r, 4);
	if (r.bad || len >= 0xfffffff0 || len > (u64)(r.end - r.p))
		return -1;
	r.end = r.p + len;
	if (read_uint(&r, 4) != (c->sec->is_eh ? 0 : 0xffffffff))
		return -1;
	read_cie(c, cie, &r);
	return cie->good ? (s64)c->nr_cies - 1 : -1;
}

/* r: an FDE behind its id. */
static int read_fde(struct cfi *c, struct reader *r, size_t cie_at)
{
	struct fde *f;
	s64 number;
	int known, ignored;
	u8 encoding;
	u64 start, len;

	number = cie_at < c->sec->len ? find_cie(c, cie_at) : -1;
	if (number < 0)
		return number == -ENOMEM ? -ENOMEM : 0;
	encoding = c->cies[number].encoding;
	start = read_encoded(c, r, encoding, &known);
	len = read_encoded(c, r, encoding & 0x0f, &ignored);
	if (c->cies[number].has_augmentation)
		skip(r, read_uleb(r));
	if (r->bad || !known || !len || start + len < start)
		return 0;
	if (grow(&c->fdes, c->nr_fdes, &c->cap_fdes, sizeof(*c->fdes)))
		return -ENOMEM;
	f = &c->fdes[c->nr_fdes];
	*f = (struct fde){start, start + len, (u32)number, (u32)c->nr_fdes, *r};
	c->nr_fdes++;
	return 0;
}

static int read_entries(struct cfi *c)
{
	struct reader all = {c->sec->data, section_end(c), 0};
	int err = 0;

	while (!err && (size_t)(all.end - all.p) >= 8) {
		u64 len = read_uint(&all, 4), id;
		struct reader r = all;
		size_t at;

		if (!len && c->sec->ends_at_mark)
			break;
		if (!len && c->sec->is_eh)
			continue; /* an end mark; crtend's may stand in the middle */
		if (len >= 0xfffffff0 || len > (u64)(all.end - all.p))
			break; /* 64-bit entries are for sections larger than any we read */
		skip(&all, len);
		r.end = all.p;
		at = (size_t)(r.p - c->sec->data);
		id = read_uint(&r, 4);
		if (c->sec->is_eh)
			err = id && id <= at ? read_fde(c, &r, at - (size_t)id) : 0;
		else
			err = id != 0xffffffff ? read_fde(c, &r, (size_t)id) : 0;
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* ---- the interpreter ---- */

struct run {
	struct cfi *c;
	const struct cie *cie;
	u64 pc, end;
	struct cfi_state now, initial, kept[MAX_REMEMBERED];
	int nr_kept;
};

static struct saved_at *reg_of(struct run *u, u64 reg)
{
	switch (reg) {
	case MP_DW_BP:
		return &u->now.bp;
	case MP_DW_BX:
		return &u->now.bx;
	case MP_DW_RA:
		return &u->now.ra;
	default:
		return NULL;
	}
}

static void save(struct run *u, u64 reg, enum saved how, s64 off)
{
	struct saved_at *at = reg_of(u, reg);

	if (at)
		*at = (struct saved_at){.how = how, .off = off};
}

static struct reader read_block(struct reader *r)
{
	u64 len = read_uleb(r);
	struct reader b = *r;

	skip(r, len);
	b.end = r->p;
	return b;
}

/* The state held from pc until here. */
static int advance(struct run *u, u64 by)
{
	struct cfi *c = u->c;
	u64 from = u->pc > c->done ? u->pc : c->done, to = u->pc + by;
	struct mp_rule rule;
	int err = 0;

	if (to < u->pc || to > u->end)
		to = u->end;
	if (to > from) {
		rule = cfi_rule(&u->now, u->cie->is_signal);
		err = c->fn(c->ctx, from, to, &rule);
		c->done = to;
	}
	u->pc = to;
	return err;
}

static void set_cfa(struct run *u, u64 reg, s64 off)
{
	u->now.expr.p = NULL;
	u->now.reg = reg;
	u->now.off = off;
}

static void restore(struct run *u, u64 reg)
{
	if (reg == MP_DW_BP)
		u->now.bp = u->initial.bp;
	else if (reg == MP_DW_BX)
		u->now.bx = u->initial.bx;
	else if (reg == MP_DW_RA)
		u->now.ra = u->initial.ra;
}

static void save_expr(struct run *u, struct reader *r, enum saved how)
{
	struct saved_at *at = reg_of(u, read_uleb(r));
	struct reader expr = read_block(r);

	if (at)
		*at = (struct saved_at){.how = how, .expr = expr};
}

static s64 scaled(u64 v, s64 align)
{
	return (s64)(v * (u64)align);
}

/* One instruction. Less than 0: the code makes no sense from here on. */
static int step(struct run *u, struct reader *r)
{
	u8 op = (u8)read_uint(r, 1);
	u64 low = op & 0x3f, reg;
	s64 align = u->cie->data_align;
	int known;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(u, low * u->cie->code_align);
	case DW_CFA_offset:
		save(u, low, SAVED_CFA, scaled(read_uleb(r), align));
		return 0;
	case DW_CFA_restore:
		restore(u, low);
		return 0;
	}
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		reg = read_encoded(u->c, r, u->cie->encoding, &known);
		return known && reg >= u->pc ? advance(u, reg - u->pc) : -EBADMSG;
	case DW_CFA_advance_loc1:
		return advance(u, read_uint(r, 1) * u->cie->code_align);
	case DW_CFA_advance_loc2:
		return advance(u, read_uint(r, 2) * u->cie->code_align);
	case DW_CFA_advance_loc4:
		return advance(u, read_uint(r, 4) * u->cie->code_align);
	case DW_CFA_offset_extended:
		reg = read_uleb(r);
		save(u, reg, SAVED_CFA, scaled(read_uleb(r), align));
		return 0;
	case DW_CFA_offset_extended_sf:
		reg = read_uleb(r);
		save(u, reg, SAVED_CFA, scaled((u64)read_sleb(r), align));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		reg = read_uleb(r);
		save(u, reg, SAVED_CFA, scaled(0 - read_uleb(r), align));
		return 0;
	case DW_CFA_restore_extended:
		restore(u, read_uleb(r));
		return 0;
	case DW_CFA_undefined:
		save(u, read_uleb(r), SAVED_GONE, 0);
		return 0;
	case DW_CFA_same_value:
		save(u, read_uleb(r), SAVED_SAME, 0);
		return 0;
	case DW_CFA_register:
		reg = read_uleb(r);
		read_uleb(r);
		save(u, reg, SAVED_OTHER, 0);
		return 0;
	case DW_CFA_remember_state:
		if (u->nr_kept == MAX_REMEMBERED)
			return -EBADMSG;
		u->kept[u->nr_kept++] = u->now;
		return 0;
	case DW_CFA_restore_state:
		if (!u->nr_kept)
			return -EBADMSG;
		u->now = u->kept[--u->nr_kept];
		return 0;
	case DW_CFA_def_cfa:
		reg = read_uleb(r);
		set_cfa(u, reg, (s64)read_uleb(r));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = read_uleb(r);
		set_cfa(u, reg, scaled((u64)read_sleb(r), align));
		return 0;
	case DW_CFA_def_cfa_register:
		set_cfa(u, read_uleb(r), u->now.off);
		return 0;
	case DW_CFA_def_cfa_offset:
		set_cfa(u, u->now.reg, (s64)read_uleb(r));
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(u, u->now.reg, scaled((u64)read_sleb(r), align));
		return 0;
	case DW_CFA_def_cfa_expression:
		u->now.expr = read_block(r);
		return 0;
	case DW_CFA_expression:
		save_expr(u, r, SAVED_EXPR);
		return 0;
	case DW_CFA_val_expression:
		save_expr(u, r, SAVED_OTHER);
		return 0;
	case DW_CFA_val_offset:
		reg = read_uleb(r);
		read_uleb(r);
		save(u, reg, SAVED_OTHER, 0);
		return 0;
	case DW_CFA_val_offset_sf:
		reg = read_uleb(r);
		read_sleb(r);
		save(u, reg, SAVED_OTHER, 0);
		return 0;
	case DW_CFA_GNU_args_size:
		read_uleb(r);
		return 0;
	default:
		return -EBADMSG;
	}
}

static int run_code(struct run *u, struct reader r)
{
	int err = 0;

	while (r.p < r.end && !err) {
		err = step(u, &r);
		if (!err && r.bad)
			err = -EBADMSG;
	}
	return err;
}

static int run_fde(struct cfi *c, const struct fde *f)
{
	struct run u = {.c = c, .cie = &c->cies[f->cie], .pc = f->start, .end = f->start};
	int err;

	/* A return address that no rule speaks of cannot be found. */
	u.now.ra.how = SAVED_OTHER;
	err = run_code(&u, u.cie->code);
	u.initial = u.now;
	u.nr_kept = 0;
	u.end = f->end;
	if (!err)
		err = run_code(&u, f->code);
	/* What stands behind nonsense is unknown, and still this function. */
	if (err == -EBADMSG) {
		u.now = (struct cfi_state){.ra.how = SAVED_OTHER, .reg = ~0ull};
		err = 0;
	}
	return err ? err : advance(&u, f->end - u.pc);
}

int cfi_read(const struct cfi_section *sec, cfi_row_fn fn, void *ctx)
{
	struct cfi c = {.sec = sec, .fn = fn, .ctx = ctx};
	int err = read_entries(&c);
	size_t i;

	if (!err && c.nr_fdes)
		qsort(c.fdes, c.nr_fdes, sizeof(*c.fdes), by_start);
	for (i = 0; i < c.nr_fdes && !err; i++)
		err = run_fde(&c, &c.fdes[i]);
	free(c.fdes);
	free(c.cies);
	return err;
}
