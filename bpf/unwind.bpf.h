/* SPDX-License-Identifier: GPL-2.0-only
 * One frame after the other up a user stack, by the unwind tables of the code it runs and where
 * there are none by frame pointers. Nothing is read but copies of the stack: what is not in memory
 * is left alone, and ends the walk. */
#ifndef MP_UNWIND_BPF_H
#define MP_UNWIND_BPF_H

#include "follow.bpf.h"
#include "shared/unwind.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MP_MAX_RANGES);
	__type(key, u32);
	__type(value, struct mp_range);
} ranges SEC(".maps");

/* space id -> its ranges. User space writes them elsewhere before it changes an entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct mp_span);
} spans SEC(".maps");

struct bank {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MP_MAX_BANKS);
	__type(key, u32);
	__array(values, struct bank);
} banks SEC(".maps");

u32 mp_unwind_generation = 0; /* of ranges and tables; what was found in older ones is void */

#define WINDOW	     4096u
#define WINDOW_FIRST 512u
#define LOWEST_ADDR  0x10000 /* nothing is mapped below */
#define MAX_STACK    (64ull << 20) /* a frame further up is none */
#define MAX_LEAF     4096
#define FOUND_RULES  512u
#define NR_MEMOS     32u
#define MEMO_READS   64u

/* A rule that was looked up before. */
struct found_rule {
	u64 pc, whose;
	struct mp_rule rule;
};

/* A walk is decided by the registers it began with and the words that it read: where all are the
 * same it is the same stack, and not walked again. */
struct memo {
	u64 ip, sp, bp, whose, also;
	u64 id;
	u32 nr; /* of words; more than MEMO_READS: not to be used */
	u32 extent;
	struct {
		u64 off, value; /* off: from sp */
	} read[MEMO_READS];
};

enum { BX_IN_REGS = 0, BX_UNKNOWN = 1 };

struct walk {
	u64 ip, sp, bp; /* of the frame at hand */
	u64 first_sp;
	u64 whose; /* space and generation */
	u64 also; /* what else makes it a stack of its own: frames that are no C code's */
	u64 regs; /* where all registers were at the start, or where a signal interrupted */
	u32 regs_in_user; /* in the struct ucontext of a signal, else in pt_regs */
	u32 all_known; /* they are those of the frame at hand */
	u64 bx_at; /* where rbx is saved, or one of these */
	u32 exact; /* ip is where the thread will go on, else a return address */
	u32 by_fp; /* the caller was found by no table: by frame pointer, or from the code */
	u32 expect; /* bytes above first_sp that the thread's last walk needed */
	u32 extent; /* those this one did */
	u32 len; /* of window */
	u64 base; /* address of window */
	struct mp_rule rule;
	u8 window[WINDOW];
	struct found_rule found[FOUND_RULES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct walk);
} walk_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_MEMOS);
	__type(key, u32);
	__type(value, struct memo);
} memo_scratch SEC(".maps");

/* Here and below a function that is not static is one the verifier checks by itself, once: inlined,
 * each depth of stack would be a path of its own through all that follows. */

/* Has all code of the space its table, or none? code: how often it has changed. */
static __always_inline int knows_code(u32 space, u32 code)
{
	struct mp_span *at = bpf_map_lookup_elem(&spans, &space);

	return at && at->code == code;
}

/* The child executes what its parent does, until user space has looked. Its own code has not
 * changed yet. */
static __always_inline void share_ranges(u32 parent, u32 child)
{
	struct mp_span *at = bpf_map_lookup_elem(&spans, &parent);
	struct mp_space_loss *s = bpf_map_lookup_elem(&space_loss, &parent);
	struct mp_span copy;

	if (!at || !s)
		return;
	copy = *at;
	copy.code = copy.code == (u32)s->code ? 0 : MP_CODE_UNKNOWN;
	bpf_map_update_elem(&spans, &child, &copy, BPF_ANY);
}

/* ---- user memory ---- */

/* Copies stack from addr up: a read for each word costs more than all the rest of the walk. As much
 * as the last walk needed; where that is not all in memory, up to the end of the page. */
__noinline int read_window(struct walk *w, u64 addr)
{
	u32 want, page = MP_PAGE_SIZE - (addr & (MP_PAGE_SIZE - 1));
	u64 used;

	if (!w)
		return 0;
	used = addr - w->first_sp;
	want = used < w->expect ? w->expect - (u32)used : 0;
	if (want < WINDOW_FIRST)
		want = WINDOW_FIRST;
	if (want > WINDOW)
		want = WINDOW;
	w->base = addr;
	w->len = want;
	if (!bpf_probe_read_user(w->window, want, (void *)addr))
		return 1;
	if (page >= want || page < 8) {
		w->len = 0;
		return 0;
	}
	w->len = bpf_probe_read_user(w->window, page & (MP_PAGE_SIZE - 1), (void *)addr) ? 0 : page;
	return w->len != 0;
}

static __always_inline void note_read(struct memo *m, u64 off, u64 value)
{
	u32 i = m->nr++;

	if (i < MEMO_READS) {
		m->read[i].off = off;
		m->read[i].value = value;
	}
}

/* The walk depends on more than a memo holds. */
static __always_inline void spoil_memo(struct memo *m)
{
	m->nr = MEMO_READS + 1;
}

/* The id of the stack when the memo is of it, else 0. */
__noinline u64 recall(struct walk *w, struct memo *m)
{
	u64 off;
	u32 i;

	if (!w || !m || m->ip != w->ip || m->sp != w->sp || m->bp != w->bp ||
	    m->whose != w->whose || m->also != w->also || m->nr > MEMO_READS || m->extent > w->len)
		return 0;
	for (i = 0; i < MEMO_READS && i < m->nr; i++) {
		off = m->read[i].off;
		if (off > WINDOW - 8 || *(u64 *)(w->window + off) != m->read[i].value)
			return 0;
	}
	return m->id;
}

/* One word of the stack. 0: not in memory. */
static __always_inline int read_word(struct walk *w, struct memo *m, u64 addr, u64 *ret)
{
	u64 off = addr - w->base;

	if (w->len < 8 || off > w->len - 8) {
		if (!read_window(w, addr)) {
			spoil_memo(m);
			return 0;
		}
		off = 0;
	}
	if (off > WINDOW - 8)
		return 0;
	*ret = *(u64 *)(w->window + off);
	note_read(m, addr - w->first_sp, *ret);
	if (addr - w->first_sp < (64u << 10))
		w->extent = addr - w->first_sp + 8;
	return 1;
}

static __always_inline int is_addr(u64 v)
{
	return v >= LOWEST_ADDR && v < (1ull << 56);
}

/* ---- tables ---- */

/* The number of the last row that begins at or before off, from 1; 0: none. */
__noinline u32 search_rows(u32 bank, u32 first, u32 nr, u32 off)
{
	void *cells = bpf_map_lookup_elem(&banks, &bank);
	u32 lo = 0, hi = nr, i, mid;
	u64 *cell;

	if (!cells)
		return 0;
	for (i = 0; i < 24 && lo < hi; i++) {
		mid = first + lo + (hi - lo) / 2;
		cell = bpf_map_lookup_elem(cells, &mid);
		if (!cell)
			return 0;
		mid -= first;
		if ((u32)*cell <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

__noinline int load_rule(struct walk *w, u32 bank, u32 rules, u32 row)
{
	void *cells = bpf_map_lookup_elem(&banks, &bank);
	u32 at;
	u64 *cell;

	if (!w || !cells)
		return 0;
	cell = bpf_map_lookup_elem(cells, &row);
	if (!cell)
		return 0;
	at = rules + (u32)(*cell >> 32) * MP_RULE_CELLS;
	cell = bpf_map_lookup_elem(cells, &at);
	if (!cell)
		return 0;
	((u64 *)&w->rule)[0] = *cell;
	at++;
	cell = bpf_map_lookup_elem(cells, &at);
	if (!cell)
		return 0;
	((u64 *)&w->rule)[1] = *cell;
	return 1;
}

/* The number of the range that pc is in, MP_MAX_RANGES when in none. */
__noinline u32 search_ranges(u32 space, u64 pc)
{
	struct mp_span *span = bpf_map_lookup_elem(&spans, &space);
	u32 lo, hi, end, i, mid;
	struct mp_range *r;

	if (!span)
		return MP_MAX_RANGES;
	lo = span->first;
	end = hi = lo + span->nr;
	for (i = 0; i < 16 && lo < hi; i++) {
		mid = lo + (hi - lo) / 2;
		r = bpf_map_lookup_elem(&ranges, &mid);
		if (!r)
			return MP_MAX_RANGES;
		if (r->end <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	r = bpf_map_lookup_elem(&ranges, &lo);
	return r && lo < end && pc >= r->start && pc < r->end ? lo : MP_MAX_RANGES;
}

__noinline int search_rule(struct walk *w, u64 pc)
{
	struct mp_range *r;
	u32 at, row;
	u64 off;

	if (!w)
		return 0;
	((u64 *)&w->rule)[0] = 0;
	((u64 *)&w->rule)[1] = 0;
	at = search_ranges(w->whose >> 32, pc);
	r = bpf_map_lookup_elem(&ranges, &at);
	if (!r || !r->nr_rows)
		return 0;
	off = pc - r->bias;
	row = off >> 32 ? 0 : search_rows(r->bank, r->rows, r->nr_rows, off);
	return row ? load_rule(w, r->bank, r->rules, r->rows + row - 1) : 0;
}

/* Leaves the rule for pc in w->rule. The code of a program's faults is a few hundred places. */
static __always_inline void find_rule(struct walk *w, u64 pc)
{
	struct found_rule *f = &w->found[(pc ^ pc >> 9) % FOUND_RULES];

	if (f->pc == pc && f->whose == w->whose) {
		w->rule = f->rule;
		return;
	}
	search_rule(w, pc);
	f->pc = pc;
	f->whose = w->whose;
	f->rule = w->rule;
}

/* ---- a step ---- */

/* Where registers lie, in words, by DWARF number. */
const u8 mp_in_pt_regs[16] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
const u8 mp_in_ucontext[16] = {18, 17, 19, 16, 14, 13, 15, 20, 5, 6, 7, 8, 9, 10, 11, 12};

/* A register of the frame at hand by its DWARF number, 0: not known. */
__noinline u64 other_register(struct walk *w, struct memo *m, u32 reg)
{
	u64 v = 0;

	if (!w || !m || reg > 15 || (!w->all_known && reg != MP_DW_BX))
		return 0;
	spoil_memo(m);
	if (reg == MP_DW_BX && w->bx_at == BX_UNKNOWN)
		return 0;
	if (reg == MP_DW_BX && w->bx_at)
		bpf_probe_read_user(&v, 8, (void *)w->bx_at);
	else if (w->regs_in_user)
		bpf_probe_read_user(&v, 8, (void *)(w->regs + mp_in_ucontext[reg] * 8));
	else
		bpf_probe_read_kernel(&v, 8, (void *)(w->regs + mp_in_pt_regs[reg] * 8));
	return v;
}

/* From the handler's frame to the one it interrupted. */
static __always_inline int step_signal(struct walk *w, struct memo *m)
{
	u64 at = w->sp, ip, sp, bp;

	if (!read_word(w, m, at + MP_UC_BP, &bp) || !read_word(w, m, at + MP_UC_SP, &sp) ||
	    !read_word(w, m, at + MP_UC_IP, &ip) || !is_addr(ip))
		return MP_STACK_CUT;
	w->ip = ip;
	w->sp = sp;
	w->bp = bp;
	w->regs = at;
	w->regs_in_user = 1;
	w->all_known = 1;
	w->bx_at = BX_IN_REGS;
	w->exact = 1;
	return MP_STACK_GOES_ON;
}

/* What is no frame pointer is not read: code without them leaves any value in the register, and a
 * refused read is a page fault of the kernel, dearer than everything else here. */
static __always_inline int step_fp(struct walk *w, struct memo *m)
{
	u64 fp = w->bp, bp, ip;

	w->by_fp = 1;
	w->bx_at = BX_UNKNOWN;
	if (!fp)
		return MP_STACK_WHOLE;
	if (!is_addr(fp) || fp % 8 ||
	    (!(w->rule.flags & MP_RULE_KEEPS_FP) && fp - w->sp > MAX_STACK))
		return MP_STACK_CUT;
	if (!read_word(w, m, fp, &bp) || !read_word(w, m, fp + 8, &ip))
		return MP_STACK_CUT;
	if (!is_addr(ip))
		return ip ? MP_STACK_CUT : MP_STACK_WHOLE;
	w->ip = ip;
	w->bp = bp;
	w->sp = fp + 16;
	return MP_STACK_GOES_ON;
}

/* Does a function that begins like this make no frame? */
static __always_inline int is_frameless(const u8 *code)
{
	if (code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa) /* endbr64 */
		code += 4;
	if ((code[0] & 0xf8) == 0x50 || (code[0] == 0x41 && (code[1] & 0xf8) == 0x50)) /* push */
		return 0;
	return !(code[0] == 0x48 && (code[1] == 0x83 || code[1] == 0x81) &&
		 code[2] == 0xec); /* sub */
}

/* Code without tables and frame, as assembly is: the word on top of the stack is taken for the
 * return address when it stands behind a call of a function that begins here, and makes no frame.
 */
static __always_inline int step_leaf(struct walk *w, struct memo *m)
{
	u8 call[5], code[8];
	u64 ip, target;

	if (!read_word(w, m, w->sp, &ip) || !is_addr(ip) ||
	    bpf_probe_read_user(call, sizeof(call), (void *)(ip - 5)) || call[0] != 0xe8)
		return MP_STACK_CUT;
	target = ip + (s64)(s32)(call[1] | call[2] << 8 | call[3] << 16 | (u32)call[4] << 24);
	if (w->ip - target >= MAX_LEAF || bpf_probe_read_user(code, sizeof(code), (void *)target) ||
	    !is_frameless(code))
		return MP_STACK_CUT;
	w->ip = ip;
	w->sp += 8;
	w->bx_at = BX_UNKNOWN;
	return MP_STACK_GOES_ON;
}

static __always_inline int find_cfa(struct walk *w, struct memo *m, u64 *ret)
{
	const struct mp_rule *r = &w->rule;
	u64 at;

	switch (r->cfa) {
	case MP_CFA_SP:
		*ret = w->sp + (s64)r->cfa_off;
		return 1;
	case MP_CFA_BP:
		*ret = w->bp + (s64)r->cfa_off;
		return 1;
	case MP_CFA_PLT:
		*ret = w->sp + (s64)r->cfa_off + ((s64)(w->ip & 15) >= r->cfa_add ? 8 : 0);
		return 1;
	case MP_CFA_REG:
		*ret = other_register(w, m, r->reg) + (s64)r->cfa_off;
		return 1;
	case MP_CFA_SP_MEM:
	case MP_CFA_BP_MEM:
		at = (r->cfa == MP_CFA_SP_MEM ? w->sp : w->bp) + (s64)r->cfa_off;
		if (at - w->sp > MAX_STACK || !read_word(w, m, at, ret))
			return 0;
		*ret += (s64)r->cfa_add;
		return 1;
	default:
		return 0;
	}
}

static __always_inline int step_table(struct walk *w, struct memo *m)
{
	const struct mp_rule *r = &w->rule;
	u64 cfa, bp = w->bp, ip;

	if (!find_cfa(w, m, &cfa))
		return MP_STACK_CUT;
	/* Stacks grow down: what is not further up is no caller. */
	if (cfa - w->sp - 1 >= MAX_STACK)
		return MP_STACK_CUT;
	if (r->bp == MP_BP_CFA && !read_word(w, m, cfa + (s64)r->bp_off, &bp))
		return MP_STACK_CUT;
	if (r->bp == MP_BP_BP && !read_word(w, m, w->bp + (s64)r->bp_off, &bp))
		return MP_STACK_CUT;
	if (!read_word(w, m, cfa + (s64)r->ra_off, &ip))
		return MP_STACK_CUT;
	if (!is_addr(ip))
		return ip ? MP_STACK_CUT : MP_STACK_WHOLE;
	w->ip = ip;
	w->bp = bp;
	w->sp = cfa;
	if (r->flags & MP_RULE_BX_SAVED)
		w->bx_at = cfa + (s64)r->bx_off;
	else if (r->flags & MP_RULE_BX_GONE)
		w->bx_at = BX_UNKNOWN;
	return MP_STACK_GOES_ON;
}

/* To the caller. enum mp_stack_end; unless it goes on, w is of no use any more. */
__noinline int step(struct walk *w, struct memo *m)
{
	int end;

	if (!w || !m)
		return MP_STACK_CUT;
	find_rule(w, w->exact ? w->ip : w->ip - 1);
	w->by_fp = !!(w->rule.flags & MP_RULE_BY_CODE);
	if (w->rule.cfa == MP_CFA_LAST)
		return MP_STACK_WHOLE;
	if (w->rule.cfa == MP_CFA_SIGNAL)
		return step_signal(w, m);
	/* Tables of code that keeps frame pointers and changes stacks are right in its leaves. */
	if (w->rule.cfa == MP_CFA_NONE && !(w->rule.flags & MP_RULE_KEEPS_FP) && w->all_known &&
	    step_leaf(w, m) == MP_STACK_GOES_ON)
		end = MP_STACK_GOES_ON;
	else if (w->rule.cfa == MP_CFA_NONE || (w->rule.flags & MP_RULE_KEEPS_FP && !w->exact))
		end = step_fp(w, m);
	else
		end = step_table(w, m);
	w->exact = 0;
	w->all_known = 0;
	return end;
}

#endif
