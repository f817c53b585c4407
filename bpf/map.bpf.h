/* SPDX-License-Identifier: GPL-2.0-only
 * Mappings: what can fail takes effect on return with its result; munmap on entry, because once it
 * returns another thread may own the range. sys_enter and sys_exit as tp_btf need no tracefs mount.
 */
#ifndef MP_MAP_BPF_H
#define MP_MAP_BPF_H

#include "emit.bpf.h"

struct inflight {
	u64 args[5];
	u64 seq_entry;
	u64 old_brk;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_INFLIGHT);
	__type(key, u32);
	__type(value, struct inflight);
} inflight SEC(".maps");

#define PAGE_UP(x) (((x) + MP_PAGE_SIZE - 1) & ~(MP_PAGE_SIZE - 1))

/* x86-64 numbers. */
enum { NR_MMAP = 9, NR_MUNMAP = 11, NR_BRK = 12, NR_MREMAP = 25, NR_MADVISE = 28 };

static __always_inline void call_enter(struct pt_regs *regs, u32 space)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct inflight f = {};

	f.args[0] = regs->di;
	f.args[1] = regs->si;
	f.args[2] = regs->dx;
	f.args[3] = regs->r10;
	f.args[4] = regs->r8;
	f.seq_entry = next_seq();
	f.old_brk = BPF_CORE_READ(bpf_get_current_task_btf(), mm, brk);
	if (bpf_map_update_elem(&inflight, &tid, &f, BPF_ANY))
		count_loss(MP_LOSS_INFLIGHT, MP_CLASS_MAP, space);
}

/* Copies the entry out and forgets it. 0 when there is none: the call began before we did. */
static __always_inline int call_exit(struct inflight *ret_f)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct inflight *f = bpf_map_lookup_elem(&inflight, &tid);

	if (!f)
		return 0;
	*ret_f = *f;
	bpf_map_delete_elem(&inflight, &tid);
	return 1;
}

static __always_inline void send_map(void *ctx, u32 space, u64 start, u64 end, u32 kind,
				     const struct inflight *f)
{
	MP_RECORD(map) r = {};

	r.ev.stack = user_stack(ctx, space, 1);
	fill_hdr(&r.hdr, MP_EV_MAP, sizeof(r), space);
	r.ev.start = start;
	r.ev.end = end;
	r.ev.seq_entry = f->seq_entry;
	r.ev.kind = kind;
	r.ev.tid = bpf_get_current_pid_tgid();
	if (kind == MP_MAP_MMAP) {
		r.ev.prot = f->args[2];
		r.ev.flags = f->args[3];
	}
	send_topo(&r, sizeof(r), MP_CLASS_MAP);
}

static __always_inline void send_unmap(u32 space, u64 start, u64 end, u64 seq_entry)
{
	MP_RECORD(unmap) r = {};

	fill_hdr(&r.hdr, MP_EV_UNMAP, sizeof(r), space);
	r.ev.start = start;
	r.ev.end = end;
	r.ev.seq_entry = seq_entry;
	send_topo(&r, sizeof(r), MP_CLASS_MAP);
}

static __always_inline void munmap_enter(struct pt_regs *regs, u32 space)
{
	u64 start = regs->di, len = regs->si;

	/* The kernel refuses these before it touches anything. */
	if (start & (MP_PAGE_SIZE - 1) || !len || start + len < start || (start + len) >> 56)
		return;
	call_enter(regs, space);
	send_unmap(space, start, start + PAGE_UP(len), 0);
}

static __always_inline void mremap_exit(void *ctx, u32 space, const struct inflight *f, u64 ret)
{
	MP_RECORD(remap) r = {};

	r.ev.stack = user_stack(ctx, space, 1);
	fill_hdr(&r.hdr, MP_EV_REMAP, sizeof(r), space);
	r.ev.old_start = f->args[0];
	r.ev.old_len = PAGE_UP(f->args[1]);
	r.ev.new_start = ret;
	r.ev.new_len = PAGE_UP(f->args[2]);
	r.ev.flags = f->args[3];
	r.ev.seq_entry = f->seq_entry;
	r.ev.tid = bpf_get_current_pid_tgid();
	send_topo(&r, sizeof(r), MP_CLASS_MAP);
}

static __always_inline void brk_exit(void *ctx, u32 space, const struct inflight *f, u64 ret)
{
	u64 old_end = PAGE_UP(f->old_brk), new_end = PAGE_UP(ret);

	if (new_end > old_end)
		send_map(ctx, space, old_end, new_end, MP_MAP_BRK, f);
	else if (new_end < old_end)
		send_unmap(space, new_end, old_end, f->seq_entry);
}

static __always_inline void madvise_exit(void *ctx, u32 space, const struct inflight *f)
{
	MP_RECORD(advise) r = {};

	r.ev.stack = user_stack(ctx, space, 1);
	fill_hdr(&r.hdr, MP_EV_ADVISE, sizeof(r), space);
	r.ev.start = f->args[0];
	r.ev.end = f->args[0] + PAGE_UP(f->args[1]);
	r.ev.advice = f->args[2];
	r.ev.tid = bpf_get_current_pid_tgid();
	send_topo(&r, sizeof(r), MP_CLASS_PAGE);
}

static __always_inline int is_map_call(long id)
{
	return id == NR_MMAP || id == NR_MUNMAP || id == NR_BRK || id == NR_MREMAP ||
	       id == NR_MADVISE;
}

/* The 32-bit table (int 0x80 from any program) numbers calls otherwise. Its mapping calls are not
 * decoded: they are a named loss, so that nothing they touched stays exact. */
#define TS_COMPAT 2

static __always_inline int is_compat(void)
{
	return bpf_get_current_task_btf()->thread_info.status & TS_COMPAT;
}

static __always_inline void compat_enter(long id)
{
	u32 space;

	/* brk, mmap, munmap, mremap, mmap2, madvise, ipc (shmat) of the 32-bit table */
	if (id != 45 && id != 90 && id != 91 && id != 163 && id != 192 && id != 219 && id != 117)
		return;
	space = current_space();
	if (space)
		count_loss(MP_LOSS_COMPAT, MP_CLASS_MAP, space);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long id)
{
	u32 space;

	if (is_compat()) {
		compat_enter(id);
		return 0;
	}
	if (!is_map_call(id))
		return 0;
	space = current_space();
	if (!space)
		return 0;
	if (id == NR_MUNMAP)
		munmap_enter(regs, space);
	else
		call_enter(regs, space);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	long id = regs->orig_ax;
	struct inflight f;
	u32 space;
	int failed = ret < 0 && ret > -4096;

	if (!is_map_call(id) || is_compat())
		return 0;
	space = current_space();
	if (!space || !call_exit(&f))
		return 0;
	if (id == NR_MMAP && !failed)
		send_map(ctx, space, ret, ret + PAGE_UP(f.args[1]), MP_MAP_MMAP, &f);
	else if (id == NR_MREMAP && !failed)
		mremap_exit(ctx, space, &f, ret);
	else if (id == NR_BRK && !failed)
		brk_exit(ctx, space, &f, ret);
	else if (id == NR_MADVISE && !failed)
		madvise_exit(ctx, space, &f);
	else if (id == NR_MUNMAP && failed)
		/* Sent on entry, then refused (map count, a sealed range): extents are unknown
		 * until the next walk, and that is a loss with a name. */
		count_loss(MP_LOSS_INFLIGHT, MP_CLASS_MAP, space);
	return 0;
}

#endif
