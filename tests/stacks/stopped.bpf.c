/* SPDX-License-Identifier: GPL-2.0-only
 * The unwinder as it is, on registers that are handed to it. */
#include "stack.bpf.h"

u64 out_frames[MP_STACK_DEPTH + 1] = {};
u32 out_nr = 0, out_end = 0, out_method = 0;

struct args {
	u64 ip, sp, bp, ucontext;
	u64 space;
};

SEC("syscall")
int walk_copy(struct args *a)
{
	struct stack_buf *buf;
	u32 zero = 0, i;
	struct walk *w;
	struct memo *m;

	buf = bpf_map_lookup_elem(&stack_scratch, &zero);
	w = bpf_map_lookup_elem(&walk_scratch, &zero);
	m = bpf_map_lookup_elem(&memo_scratch, &zero);
	if (!buf || !w || !m)
		return 1;
	w->ip = a->ip;
	w->sp = w->first_sp = a->sp;
	w->bp = a->bp;
	w->whose = a->space << 32 | mp_unwind_generation;
	w->regs = a->ucontext;
	w->regs_in_user = 1;
	w->all_known = 1;
	w->bx_at = BX_IN_REGS;
	w->exact = 1;
	w->expect = w->extent = w->len = 0;
	m->nr = 0;
	out_nr = walk_frames(buf, w, m);
	out_end = buf->ev.truncated;
	out_method = buf->ev.method;
	for (i = 0; i < MP_STACK_DEPTH; i++)
		out_frames[i] = buf->frames[i];
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
