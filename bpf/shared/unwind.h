/* SPDX-License-Identifier: GPL-2.0-only
 * What the unwinder in BPF and the builder of its tables share. A module's table is a row of cells
 * of 8 bytes: its rules, two cells each, then its rows, one cell each, sorted by where in the file
 * they begin. Tables lie in banks, which are arrays of cells; a table is never split. */
#ifndef MP_SHARED_UNWIND_H
#define MP_SHARED_UNWIND_H

#include "types.h"

/* Where the frame ends (its CFA: the stack pointer of the caller). */
enum mp_cfa {
	MP_CFA_NONE = 0, /* the tables do not say: by frame pointer */
	MP_CFA_SP = 1, /* sp + cfa_off */
	MP_CFA_BP = 2, /* bp + cfa_off */
	MP_CFA_REG =
		3, /* DWARF register reg + cfa_off: above the innermost frame rbx only is known */
	MP_CFA_SP_MEM = 4, /* the word at sp + cfa_off, + cfa_add */
	MP_CFA_BP_MEM = 5, /* the word at bp + cfa_off, + cfa_add */
	MP_CFA_PLT = 6, /* sp + cfa_off, and 8 more where (ip & 15) >= cfa_add */
	MP_CFA_SIGNAL = 7, /* of the frame a signal was delivered to, all registers are at sp */
	MP_CFA_LAST = 8, /* nobody called it: program or thread start */
	MP_CFA_OTHER = 9, /* a rule we cannot follow */
};
enum mp_bp {
	MP_BP_SAME = 0,
	MP_BP_CFA = 1, /* at CFA + bp_off */
	MP_BP_BP = 2, /* at bp + bp_off */
	MP_BP_GONE = 3, /* not saved */
};

struct mp_rule {
	s32 cfa_off;
	s16 bp_off, bx_off; /* rbx: at CFA + bx_off, if the flags say that it is saved */
	s16 cfa_add, ra_off; /* the return address is at CFA + ra_off */
	u8 cfa, bp, reg;
	u8 flags; /* enum mp_rule_flags */
};
enum mp_rule_flags {
	MP_RULE_KEEPS_FP = 1, /* code that keeps frame pointers, and may go from stack to stack */
	MP_RULE_BY_CODE = 2, /* no table says so: what the instructions do to the stack pointer */
	MP_RULE_BX_SAVED =
		4, /* rbx, by which the loader finds its frame where it resolves a call */
	MP_RULE_BX_GONE = 8,
};
#define MP_RULE_CELLS 2

/* A row: the file offset from which on the rule counts, low; its number, high. */
#define MP_ROW(off, rule) ((u64)(rule) << 32 | (u32)(off))

/* An executable mapping. Address - bias is the offset in its file. */
struct mp_range {
	u64 start, end, bias;
	u32 bank, rules, rows, nr_rows; /* nr_rows 0: no table */
};

/* The ranges of a space, sorted. */
struct mp_span {
	u32 first, nr;
	u32 code; /* how often its code had changed when they were looked at: mp_space_loss.code */
	u32 reserved;
};
#define MP_CODE_UNKNOWN 0xffffffffu /* some tables are still being built */

#define MP_MAX_RANGES	32768u
#define MP_MAX_BANKS	256u
#define MP_BANK_CELLS	(128u << 10) /* of a bank, unless one table needs more */
#define MP_MAX_CELLS	(8u << 20) /* of a table */
#define MP_MAX_RULES	65536u /* of a table */

/* x86-64: DWARF numbers, and where a signal handler's return address finds the registers, from the
 * stack pointer up (struct ucontext). */
enum { MP_DW_BX = 3, MP_DW_BP = 6, MP_DW_SP = 7, MP_DW_RA = 16 };
enum { MP_UC_BP = 120, MP_UC_SP = 160, MP_UC_IP = 168 };

#endif
