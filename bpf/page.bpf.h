/* SPDX-License-Identifier: GPL-2.0-only
 * Page generations by the tracepoint machine. A fault opens at page_fault_user; x86 has no event
 * that closes it, so a later allocation or rss change belongs to it only while the thread still
 * shows the same user ip and sp and is in no system call. Nothing inside a reclaim bracket counts.
 */
#ifndef MP_PAGE_BPF_H
#define MP_PAGE_BPF_H

#include "emit.bpf.h"

#define GFP_MOVABLE 0x8u
#define GFP_NORETRY 0x10000u
#define MEMBER_SWAP 2
#define MEMBER_NONE 255
#define EC_PRESENT  1

struct open_fault {
	u64 addr, ip, sp, time_ns;
	u16 error_code;
	u8 committed, order;
	u16 candidates, reclaim;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MP_MAX_INFLIGHT);
	__type(key, u32);
	__type(value, struct open_fault);
} open_faults SEC(".maps");

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct open_fault f = {};

	if (!current_space())
		return 0;
	f.addr = address;
	f.ip = regs->ip;
	f.sp = regs->sp;
	f.time_ns = bpf_ktime_get_ns();
	f.error_code = error_code;
	if (bpf_map_update_elem(&open_faults, &tid, &f, BPF_ANY))
		count_loss(MP_LOSS_INFLIGHT, MP_CLASS_PAGE, current_space());
	return 0;
}

/* The fault this thread is in right now, or NULL. */
static __always_inline struct open_fault *fault_here(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct open_fault *f = bpf_map_lookup_elem(&open_faults, &tid);
	struct pt_regs *regs;

	if (!f || f->committed || f->reclaim)
		return NULL;
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (regs->ip != f->ip || regs->sp != f->sp || regs->orig_ax != (unsigned long)-1)
		return NULL;
	return f;
}

static __always_inline void commit(void *ctx, struct open_fault *f, u8 member)
{
	MP_RECORD(fault) r = {};
	u32 space = current_space();
	u64 stall;

	if (!space)
		return;
	f->committed = 1;
	r.ev.stack = user_stack(ctx, space, 0);
	fill_hdr(&r.hdr, MP_EV_FAULT, sizeof(r), space);
	stall = r.hdr.time_ns - f->time_ns;
	r.ev.addr = f->addr;
	r.ev.stall = stall >> 32 ? 0xffffffffu : (u32)stall;
	r.ev.tid = bpf_get_current_pid_tgid();
	r.ev.error_code = f->error_code;
	r.ev.member = member;
	r.ev.order = f->order;
	r.ev.flags = f->candidates > 1 ? MP_FAULT_AMBIGUOUS : 0;
	send_detail(&r, sizeof(r));
}

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(on_alloc, struct page *page, unsigned int order, u32 gfp, int migratetype)
{
	struct open_fault *f;

	if ((gfp & (GFP_MOVABLE | GFP_NORETRY)) != GFP_MOVABLE || !current_space())
		return 0;
	f = fault_here();
	if (!f)
		return 0;
	if (f->candidates < 0xffff)
		f->candidates++;
	if (order > f->order)
		f->order = order;
	/* Copy on write changes no rss counter: the allocation is the only sign of it. */
	if (f->error_code & EC_PRESENT)
		commit(ctx, f, MEMBER_NONE);
	return 0;
}

SEC("tp_btf/rss_stat")
int BPF_PROG(on_rss, struct mm_struct *mm, int member)
{
	struct open_fault *f;

	if (member == MEMBER_SWAP || !current_space())
		return 0;
	f = fault_here();
	if (!f || bpf_get_current_task_btf()->mm != mm)
		return 0;
	commit(ctx, f, member);
	return 0;
}

static __always_inline int bracket(int begin)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct open_fault *f = bpf_map_lookup_elem(&open_faults, &tid);

	if (f)
		f->reclaim = begin;
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int BPF_PROG(on_reclaim_begin)
{
	return bracket(1);
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int BPF_PROG(on_reclaim_end)
{
	return bracket(0);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int BPF_PROG(on_memcg_reclaim_begin)
{
	return bracket(1);
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int BPF_PROG(on_memcg_reclaim_end)
{
	return bracket(0);
}

#endif
