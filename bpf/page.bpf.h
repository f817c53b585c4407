/* SPDX-License-Identifier: GPL-2.0-only
 * Page generations by the tracepoint machine. A fault opens at page_fault_user; x86 has no event
 * that closes it, so a later allocation or rss change belongs to it only while the thread still
 * shows the same user ip and sp and is in no system call. Nothing inside a reclaim bracket counts.
 */
#ifndef MP_PAGE_BPF_H
#define MP_PAGE_BPF_H

#include "life.bpf.h"

#define GFP_MOVABLE    0x8u
#define GFP_NORETRY    0x10000u
#define GFP_THISNODE   0x200000u
#define MEMBER_SWAP    2
#define MEMBER_UNKNOWN 254
#define MEMBER_NONE    255
#define EC_PRESENT     1

SEC("tp_btf/page_fault_user")
int HOOK(on_fault, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	struct thread *t = current_thread(MP_CLASS_PAGE);

	if (!t)
		return 0;
	t->fault.addr = address;
	t->fault.ip = regs->ip;
	t->fault.sp = regs->sp;
	t->fault.time_ns = bpf_ktime_get_ns();
	t->fault.error_code = error_code;
	t->fault.open = 1;
	t->fault.done = 0;
	t->fault.order = 0;
	t->fault.candidates = 0;
	t->fault.reclaim = 0;
#ifdef MP_BASIC
	t->fault.regs = (u64)regs;
#endif
	return 0;
}

/* Is the thread in its open fault right now? */
static __always_inline int in_fault(const struct thread *t)
{
	return t && t->fault.open && !t->fault.reclaim && at_fault(t);
}

static __always_inline void commit(void *ctx, struct thread *t, u8 member)
{
	MP_RECORD(fault) * r;
	u64 stack = user_stack(ctx, t, 0);
	u64 seq = next_seq(), now = bpf_ktime_get_ns(), stall = now - t->fault.time_ns;

	t->fault.open = 0;
	t->fault.done = 1;
	r = lose(cfg_lose_detail, seq) ? NULL : bpf_ringbuf_reserve(&detail_ring, sizeof(*r), 0);
	if (!r) {
		count_loss(MP_LOSS_DETAIL_RING, MP_CLASS_PAGE, t->space);
		return;
	}
	r->hdr.type = MP_EV_FAULT;
	r->hdr.size = sizeof(*r);
	r->hdr.space = t->space;
	r->hdr.seq = seq;
	r->hdr.time_ns = now;
	r->ev.addr = t->fault.addr;
	r->ev.stack = stack;
	r->ev.stall = stall >> 32 ? 0xffffffffu : (u32)stall;
	r->ev.tid = bpf_get_current_pid_tgid();
	r->ev.error_code = t->fault.error_code;
	r->ev.member = member;
	r->ev.order = t->fault.order;
	r->ev.flags = (t->fault.candidates > 1 ? MP_FAULT_AMBIGUOUS : 0) |
		      (t->alloc.sp ? MP_FAULT_ALLOC : 0);
	/* How full the ring is is asked now and then, not by each record. */
	bpf_ringbuf_submit(r, t->sent++ % 64 ? BPF_RB_NO_WAKEUP : DETAIL_WAKE);
}

static __always_inline int allocated(void *ctx, u32 order, u32 gfp)
{
	struct thread *t;

	if (!(gfp & GFP_MOVABLE))
		return 0;
	/* Readahead does not insist, and neither does the first try for a huge page, which is the
	 * only one of the two to ask for a node. */
	if (gfp & GFP_NORETRY && !(order && gfp & GFP_THISNODE))
		return 0;
	t = known_thread();
	if (!in_fault(t))
		return 0;
	if (t->fault.candidates < 0xffff)
		t->fault.candidates++;
	t->fault.order = order;
	/* Copy on write changes no rss counter: the allocation is the only sign of it. It copies
	 * one page; a larger one takes the place of the huge zero page, and is counted. */
	if (t->fault.error_code & EC_PRESENT && !order)
		commit(ctx, t, MEMBER_NONE);
	else if (counters_late())
		commit(ctx, t, MEMBER_UNKNOWN);
	return 0;
}

/* Without a page: failed, and the kernel tries again with less. */
#ifdef MP_PREEMPTIBLE
SEC("tp/kmem/mm_page_alloc")
int on_alloc(struct trace_event_raw_mm_page_alloc *ctx)
{
	return ctx->pfn == -1ul ? 0 : allocated(ctx, ctx->order, ctx->gfp_flags);
}
#else
SEC("tp_btf/mm_page_alloc")
int BPF_PROG(on_alloc, struct page *page, unsigned int order, u32 gfp, int migratetype)
{
	return page ? allocated(ctx, order, gfp) : 0;
}
#endif

SEC("tp_btf/rss_stat")
int HOOK(on_rss, struct mm_struct *mm, int member)
{
	struct thread *t;

	if (counters_late()) {
		mp_counters_late = 1;
		return 0;
	}
	t = known_thread();
	if (member == MEMBER_SWAP) {
		swap_entry_changed(t, mm);
		return 0;
	}
	if (in_fault(t) && CURRENT(mm) == mm)
		commit(ctx, t, member);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int HOOK(on_reclaim_begin)
{
	reclaim_begins();
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int HOOK(on_memcg_reclaim_begin)
{
	reclaim_begins();
	return 0;
}

/* Of both: such a program can be attached twice, and its copy of the unwinder is loaded once. */
SEC("raw_tp/mm_vmscan_direct_reclaim_end")
int on_reclaim_end(void *ctx)
{
	hold_cpu();
	reclaim_ends(ctx);
	release_cpu();
	return 0;
}

#endif
