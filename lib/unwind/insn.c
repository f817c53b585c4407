/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>
#include "lib/unwind/insn.h"
#include "lib/unwind/reader.h"

enum { RSP = 4, RBP = 5 };

struct decoder {
	struct reader r;
	u8 rex, opsize, addrsize;
	u8 mod, reg, rm; /* of ModRM, with REX */
	u8 base; /* of SIB, with REX; rm without one */
	u8 by_ip;
	s64 disp;
};

/* Has a one-byte opcode a ModRM? A bit each. */
static const u32 modrm1[8] = {
	0x0f0f0f0f, /* 00-1f: arithmetic */
	0x0f0f0f0f, /* 20-3f */
	0x00000000, /* 40-5f: REX, push, pop */
	0x00000a08, /* 60-7f: movsxd, imul */
	0x0000ffff, /* 80-9f */
	0x00000000, /* a0-bf */
	0xff0f00c3, /* c0-df */
	0xc0c00000, /* e0-ff */
};

/* And one behind 0f? */
static const u32 modrm2[8] = {
	0xffff200f, /* 00-1f */
	0x0000ff0f, /* 20-3f: no 30-37; 38 and 3a are maps of their own */
	0xffffffff, /* 40-5f */
	0xff7fffff, /* 60-7f: not emms */
	0xffff0000, /* 80-9f: branches, setcc */
	0xfffff838, /* a0-bf */
	0xffff00ff, /* c0-df: bswap */
	0xffffffff, /* e0-ff */
};

static int bit(const u32 *map, u8 op)
{
	return map[op >> 5] >> (op & 31) & 1;
}

static void read_modrm(struct decoder *d)
{
	u8 b = (u8)read_uint(&d->r, 1), sib;

	d->mod = b >> 6;
	d->reg = (b >> 3 & 7) | (d->rex & 4 ? 8 : 0);
	d->rm = d->base = (b & 7) | (d->rex & 1 ? 8 : 0);
	d->disp = 0;
	if (d->mod == 3)
		return;
	if ((b & 7) == 4) {
		sib = (u8)read_uint(&d->r, 1);
		/* An index makes it no register plus a number. */
		d->base = (sib >> 3 & 7) == 4 && !(d->rex & 2) ? (sib & 7) | (d->rex & 1 ? 8 : 0)
							       : 0xff;
		if (!d->mod && (sib & 7) == 5) {
			d->base = 0xff;
			skip(&d->r, 4);
			return;
		}
	} else if (!d->mod && (b & 7) == 5) {
		d->base = 0xff;
		d->by_ip = 1;
		d->disp = read_sint(&d->r, 4);
		return;
	}
	if (d->mod == 1)
		d->disp = read_sint(&d->r, 1);
	else if (d->mod == 2)
		d->disp = read_sint(&d->r, 4);
}

static u32 imm_size(const struct decoder *d)
{
	return d->opsize && !(d->rex & 8) ? 2 : 4;
}

static void set(struct insn *i, enum insn_kind kind, s64 value, int reg)
{
	i->kind = kind;
	i->value = value;
	i->reg = (signed char)reg;
}

/* Opcodes 80, 81, 83: arithmetic of a register and a number. */
static void arithmetic(const struct decoder *d, struct insn *i, s64 imm)
{
	if (d->mod != 3 || d->rm != RSP)
		return;
	if ((d->reg & 7) == 7)
		return; /* cmp */
	if (!(d->rex & 8))
		set(i, INSN_SP_LOST, 0, -1);
	else if ((d->reg & 7) == 0)
		set(i, INSN_ADD_SP, imm, -1);
	else if ((d->reg & 7) == 5)
		set(i, INSN_ADD_SP, -imm, -1);
	else
		set(i, INSN_SP_LOST, 0, -1);
}

/* op writes to, or reads from, rm; wide: 64 bit. */
static void move(const struct decoder *d, u8 op, struct insn *i)
{
	u8 to = op == 0x89 ? d->rm : d->reg, from = op == 0x89 ? d->reg : d->rm;

	if (op == 0x89 && d->mod != 3)
		return;
	if (d->mod == 3 && d->rex & 8 && to == RBP && from == RSP)
		set(i, INSN_BP_FROM_SP, 0, -1);
	else if (d->mod == 3 && d->rex & 8 && to == RSP && from == RBP)
		set(i, INSN_SP_FROM_BP, 0, -1);
	else if (to == RSP)
		set(i, INSN_SP_LOST, 0, -1);
}

static void load_address(const struct decoder *d, struct insn *i)
{
	/* Behind it: the length is not known yet, but nothing follows. */
	if (d->by_ip)
		i->address = (u64)d->disp;
	if (d->reg != RSP)
		return;
	if (d->rex & 8 && d->base == RSP)
		set(i, INSN_ADD_SP, d->disp, -1);
	else if (d->rex & 8 && d->base == RBP)
		set(i, INSN_SP_FROM_BP, d->disp, -1);
	else
		set(i, INSN_SP_LOST, 0, -1);
}

static void group_ff(const struct decoder *d, struct insn *i)
{
	switch (d->reg & 7) {
	case 2:
	case 3:
		i->kind = INSN_CALL;
		break;
	case 4:
	case 5:
		i->kind = INSN_JUMP;
		break;
	case 6:
		set(i, INSN_PUSH, 8, -1);
		break;
	}
}

/* What else writes to rsp: arithmetic with rm or reg as its destination. */
static void writes_sp(const struct decoder *d, u8 op, struct insn *i)
{
	int to_rm = (op < 0x40 && (op & 6) == 0) || op == 0x87 || op == 0xc1 || op == 0xd1 ||
		    op == 0xd3 || op == 0xc7 || op == 0xf7 || op == 0xff;
	int to_reg = (op < 0x40 && (op & 6) == 2) || op == 0x63 || op == 0x69 || op == 0x6b ||
		     op == 0x87;

	if (op < 0x40 && (op & 0x38) == 0x38)
		return; /* cmp */
	if ((to_rm && d->mod == 3 && d->rm == RSP) || (to_reg && d->reg == RSP))
		set(i, INSN_SP_LOST, 0, -1);
}

static void one_byte(struct decoder *d, u8 op, struct insn *i)
{
	s64 imm = 0;

	if (bit(modrm1, op))
		read_modrm(d);
	if (op < 0x40 && (op & 7) < 6 && (op & 7) > 3)
		skip(&d->r, (op & 1) ? imm_size(d) : 1);
	if (bit(modrm1, op))
		writes_sp(d, op, i);
	if (op >= 0x50 && op < 0x60)
		set(i, op < 0x58 ? INSN_PUSH : INSN_POP, 8, (op & 7) | (d->rex & 1 ? 8 : 0));
	if (op == 0x5c && !(d->rex & 1))
		set(i, INSN_SP_LOST, 0, -1);
	if ((op & 0xf0) == 0x70 || (op >= 0xe0 && op < 0xe4)) {
		imm = read_sint(&d->r, 1);
		set(i, INSN_BRANCH, imm, -1);
	}
	if (op >= 0xb0 && op < 0xb8)
		skip(&d->r, 1);
	if (op >= 0xb8 && op < 0xc0) {
		i->address = read_uint(&d->r, d->rex & 8 ? 8 : imm_size(d));
		i->is_number = 1;
		if (op == 0xbc && !(d->rex & 1))
			set(i, INSN_SP_LOST, 0, -1);
	}
	switch (op) {
	case 0x68:
		skip(&d->r, imm_size(d));
		set(i, INSN_PUSH, 8, -1);
		break;
	case 0x6a:
		skip(&d->r, 1);
		set(i, INSN_PUSH, 8, -1);
		break;
	case 0x69:
	case 0xa9:
		skip(&d->r, imm_size(d));
		break;
	case 0xc7:
		i->address = (u64)read_sint(&d->r, imm_size(d));
		i->is_number = 1;
		break;
	case 0x6b:
	case 0xa8:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xcd:
	case 0xe4:
	case 0xe5:
	case 0xe6:
	case 0xe7:
		skip(&d->r, 1);
		break;
	case 0x80:
	case 0x83:
		imm = read_sint(&d->r, 1);
		if (op == 0x83)
			arithmetic(d, i, imm);
		break;
	case 0x81:
		imm = read_sint(&d->r, imm_size(d));
		arithmetic(d, i, imm);
		break;
	case 0x89:
	case 0x8b:
		move(d, op, i);
		break;
	case 0x8d:
		load_address(d, i);
		break;
	case 0x8f:
		set(i, INSN_POP, 8, -1);
		break;
	case 0x31:
	case 0x33:
		if (d->mod == 3 && d->reg == RBP && d->rm == RBP)
			i->kind = INSN_BP_ZERO;
		break;
	case 0x94:
		if (!(d->rex & 1))
			set(i, INSN_SP_LOST, 0, -1);
		break;
	case 0x9c:
		set(i, INSN_PUSH, 8, -1);
		break;
	case 0x9d:
		set(i, INSN_POP, 8, -1);
		break;
	case 0xa0:
	case 0xa1:
	case 0xa2:
	case 0xa3:
		skip(&d->r, d->addrsize ? 4 : 8);
		break;
	case 0xc2:
	case 0xca:
		skip(&d->r, 2);
		i->kind = INSN_END;
		break;
	case 0xc3:
	case 0xcb:
	case 0xcc:
	case 0xcf:
	case 0xf4:
		i->kind = INSN_END;
		break;
	case 0xc8:
		skip(&d->r, 3);
		set(i, INSN_SP_LOST, 0, -1);
		break;
	case 0xc9:
		i->kind = INSN_LEAVE;
		break;
	case 0xe8:
		set(i, INSN_CALL, read_sint(&d->r, 4), 0);
		break;
	case 0xe9:
		set(i, INSN_JUMP, read_sint(&d->r, 4), 0);
		break;
	case 0xeb:
		set(i, INSN_JUMP, read_sint(&d->r, 1), 0);
		break;
	case 0xf6:
		if (!(d->reg & 6))
			skip(&d->r, 1);
		break;
	case 0xf7:
		if (!(d->reg & 6))
			skip(&d->r, imm_size(d));
		break;
	case 0xff:
		group_ff(d, i);
		break;
	case 0x06:
	case 0x07:
	case 0x0e:
	case 0x16:
	case 0x17:
	case 0x1e:
	case 0x1f:
	case 0x27:
	case 0x2f:
	case 0x37:
	case 0x3f:
	case 0x60:
	case 0x61:
	case 0x82:
	case 0x9a:
	case 0xce:
	case 0xd4:
	case 0xd5:
	case 0xd6:
	case 0xea:
		d->r.bad = 1; /* not in 64-bit code */
		break;
	}
}

/* Behind 0f, and in the first map of VEX and EVEX. */
static void two_byte(struct decoder *d, u8 op, struct insn *i)
{
	if (bit(modrm2, op))
		read_modrm(d);
	if ((op & 0xf0) == 0x80)
		set(i, INSN_BRANCH, read_sint(&d->r, 4), -1);
	if ((op >= 0x70 && op < 0x74) || op == 0xa4 || op == 0xac || op == 0xba || op == 0xc2 ||
	    (op >= 0xc4 && op < 0xc7))
		skip(&d->r, 1);
	if (op == 0x0b)
		i->kind = INSN_END; /* ud2 */
	if ((op & 0xf0) == 0x40 && d->reg == RSP)
		set(i, INSN_SP_LOST, 0, -1);
	if (op == 0xa0 || op == 0xa8)
		set(i, INSN_PUSH, 8, -1);
	if (op == 0xa1 || op == 0xa9)
		set(i, INSN_POP, 8, -1);
}

static void by_map(struct decoder *d, u32 map, struct insn *i)
{
	u8 op = (u8)read_uint(&d->r, 1);

	switch (map) {
	case 1:
		if (op == 0x77)
			return; /* vzeroupper */
		if ((op & 0xf0) == 0x80 || (op & 0xf0) == 0x40 || (op & 0xf0) == 0x90) {
			read_modrm(d); /* mask registers */
			return;
		}
		two_byte(d, op, i);
		break;
	case 3:
		read_modrm(d);
		skip(&d->r, 1);
		break;
	case 2:
	case 5:
	case 6:
		read_modrm(d);
		break;
	default:
		d->r.bad = 1;
	}
}

static void opcode(struct decoder *d, struct insn *i)
{
	u8 op = (u8)read_uint(&d->r, 1), p;

	switch (op) {
	case 0x0f:
		op = (u8)read_uint(&d->r, 1);
		if (op == 0x38)
			read_uint(&d->r, 1), read_modrm(d);
		else if (op == 0x3a)
			read_uint(&d->r, 1), read_modrm(d), skip(&d->r, 1);
		else
			two_byte(d, op, i);
		break;
	case 0xc5:
		p = (u8)read_uint(&d->r, 1);
		d->rex = p & 0x80 ? 0 : 4;
		by_map(d, 1, i);
		break;
	case 0xc4:
		p = (u8)read_uint(&d->r, 1);
		skip(&d->r, 1);
		d->rex = (u8)(~p >> 5 & 7);
		by_map(d, p & 0x1f, i);
		break;
	case 0x62:
		p = (u8)read_uint(&d->r, 1);
		skip(&d->r, 2);
		d->rex = (u8)(~p >> 5 & 7);
		by_map(d, p & 7, i);
		break;
	default:
		one_byte(d, op, i);
	}
}

static void prefixes(struct decoder *d)
{
	for (; d->r.p < d->r.end; d->r.p++) {
		switch (*d->r.p) {
		case 0x66:
			d->opsize = 1;
			break;
		case 0x67:
			d->addrsize = 1;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			break;
		default:
			if ((*d->r.p & 0xf0) == 0x40)
				d->rex = *d->r.p++;
			return;
		}
	}
}

int insn_read(const u8 *code, size_t len, u64 at, struct insn *ret)
{
	struct decoder d = {0};

	if (at >= len)
		return 0;
	d.r = (struct reader){code + at, code + (len - at > 15 ? at + 15 : len), 0};
	*ret = (struct insn){.reg = -1};
	prefixes(&d);
	opcode(&d, ret);
	if (d.r.bad)
		return 0;
	ret->len = (u8)(d.r.p - (code + at));
	if (ret->address && !ret->is_number)
		ret->address += at + ret->len;
	/* reg 0: of a call or a jump, whose value is a distance. */
	if (ret->kind == INSN_BRANCH ||
	    ((ret->kind == INSN_CALL || ret->kind == INSN_JUMP) && !ret->reg))
		ret->target = at + ret->len + (u64)ret->value;
	return 1;
}
