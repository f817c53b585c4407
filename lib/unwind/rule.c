/* SPDX-License-Identifier: GPL-2.0-only */
#include <dwarf.h>
#include "lib/unwind/rule.h"

/* An expression that is a register plus a number, with *ret_mem a word of memory there, to which
 * *ret_add is added. */
static int simple_expr(struct reader r, u64 *ret_reg, s64 *ret_off, int *ret_mem, s64 *ret_add)
{
	u8 op = (u8)read_uint(&r, 1);

	*ret_mem = 0;
	*ret_add = 0;
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		*ret_reg = op - DW_OP_breg0;
	else if (op == DW_OP_bregx)
		*ret_reg = read_uleb(&r);
	else
		return 0;
	*ret_off = read_sleb(&r);
	if (r.p < r.end && *r.p == DW_OP_deref) {
		r.p++;
		*ret_mem = 1;
		if (r.p < r.end && *r.p == DW_OP_plus_uconst) {
			r.p++;
			*ret_add = (s64)read_uleb(&r);
		}
	}
	return !r.bad && r.p == r.end;
}

/* What linkers write for the procedure linkage table: one word more is on the stack from the second
 * instruction of each entry of 16 bytes on. */
static int plt_expr(struct reader r, struct mp_rule *ret)
{
	s64 off;

	if (read_uint(&r, 1) != DW_OP_breg7)
		return 0;
	off = read_sleb(&r);
	if (read_uint(&r, 1) != DW_OP_breg16 || read_sleb(&r) || read_uint(&r, 1) != DW_OP_lit15 ||
	    read_uint(&r, 1) != DW_OP_and)
		return 0;
	ret->cfa_add = (s16)((s64)read_uint(&r, 1) - DW_OP_lit0);
	if (ret->cfa_add < 0 || ret->cfa_add > 15 || off < 0 || off > 4096)
		return 0;
	if (read_uint(&r, 1) != DW_OP_ge || read_uint(&r, 1) != DW_OP_lit3 ||
	    read_uint(&r, 1) != DW_OP_shl || read_uint(&r, 1) != DW_OP_plus)
		return 0;
	ret->cfa = MP_CFA_PLT;
	ret->cfa_off = (s32)off;
	return !r.bad && r.p == r.end;
}

static int fits32(s64 v)
{
	return v == (s32)v;
}

static int fits16(s64 v)
{
	return v == (s16)v;
}

static int cfa_rule(const struct cfi_state *s, int is_signal, struct mp_rule *ret)
{
	u64 reg = s->reg;
	s64 off = s->off, add = 0;
	int mem = 0;

	if (s->expr.p && plt_expr(s->expr, ret))
		return 1;
	*ret = (struct mp_rule){0};
	if (s->expr.p && (!simple_expr(s->expr, &reg, &off, &mem, &add) || !mem))
		return 0;
	if (is_signal && mem && reg == MP_DW_SP && off == MP_UC_SP) {
		ret->cfa = MP_CFA_SIGNAL;
		return 1;
	}
	if (!fits32(off) || !fits16(add))
		return 0;
	ret->cfa_off = (s32)off;
	ret->cfa_add = (s16)add;
	if (reg == MP_DW_SP)
		ret->cfa = mem ? MP_CFA_SP_MEM : MP_CFA_SP;
	else if (reg == MP_DW_BP)
		ret->cfa = mem ? MP_CFA_BP_MEM : MP_CFA_BP;
	else if (reg < MP_DW_RA && !mem)
		ret->cfa = MP_CFA_REG;
	else
		return 0;
	ret->reg = (u8)reg;
	return 1;
}

static int bp_rule(const struct saved_at *bp, struct mp_rule *ret)
{
	s64 off = bp->off, add;
	u64 reg;
	int mem;

	switch (bp->how) {
	case SAVED_SAME:
		return 1;
	case SAVED_GONE:
		ret->bp = MP_BP_GONE;
		return 1;
	case SAVED_CFA:
		ret->bp = MP_BP_CFA;
		break;
	case SAVED_EXPR:
		if (!simple_expr(bp->expr, &reg, &off, &mem, &add) || mem || reg != MP_DW_BP)
			return 0;
		ret->bp = MP_BP_BP;
		break;
	default:
		return 0;
	}
	ret->bp_off = (s16)off;
	return fits16(off);
}

static u8 bx_flags(const struct saved_at *bx, struct mp_rule *ret)
{
	if (bx->how == SAVED_SAME)
		return 0;
	if (bx->how != SAVED_CFA || !fits16(bx->off))
		return MP_RULE_BX_GONE;
	ret->bx_off = (s16)bx->off;
	return MP_RULE_BX_SAVED;
}

struct mp_rule cfi_rule(const struct cfi_state *s, int is_signal)
{
	struct mp_rule r = {0};

	if (s->ra.how == SAVED_GONE)
		return (struct mp_rule){.cfa = MP_CFA_LAST};
	if (!cfa_rule(s, is_signal, &r))
		return (struct mp_rule){.cfa = MP_CFA_OTHER};
	if (r.cfa == MP_CFA_SIGNAL)
		return r;
	if (!bp_rule(&s->bp, &r) || s->ra.how != SAVED_CFA || !fits16(s->ra.off))
		return (struct mp_rule){.cfa = MP_CFA_OTHER};
	r.ra_off = (s16)s->ra.off;
	r.flags = bx_flags(&s->bx, &r);
	return r;
}
