/* SPDX-License-Identifier: GPL-2.0-only
 * How long an x86-64 instruction is, and what it does to the stack pointer and to the flow of code.
 * Not a disassembler: operands that concern neither are skipped. */
#ifndef MP_UNWIND_INSN_H
#define MP_UNWIND_INSN_H

#include <stddef.h>
#include "bpf/shared/types.h"

enum insn_kind {
	INSN_OTHER, /* the stack pointer stays, the next instruction follows */
	INSN_PUSH, /* sp -= value; reg: which, or -1 */
	INSN_POP, /* sp += value; reg: which, or -1 */
	INSN_ADD_SP, /* sp += value */
	INSN_SP_FROM_BP, /* sp = bp + value */
	INSN_BP_FROM_SP, /* bp = sp */
	INSN_BP_ZERO, /* bp = 0 */
	INSN_LEAVE, /* sp = bp; pop bp */
	INSN_SP_LOST, /* sp becomes what we do not follow */
	INSN_CALL, /* target, 0: not known */
	INSN_JUMP, /* target, 0: not known */
	INSN_BRANCH, /* to target, or on */
	INSN_END, /* returns, or does not go on */
};

struct insn {
	enum insn_kind kind;
	u8 len;
	signed char reg;
	s64 value;
	u64 target; /* offset from the beginning of code, as at is */
	u64 address; /* loaded into a register: an offset, too, or a number; 0: none */
	int is_number;
};

/* The instruction at offset at of code. 0: none that we know. */
int insn_read(const u8 *code, size_t len, u64 at, struct insn *ret);

#endif
