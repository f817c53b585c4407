/* SPDX-License-Identifier: GPL-2.0-only
 * Mappings: what can fail takes effect on return with its result; munmap on entry, because once it
 * returns another thread may own the range. sys_enter and sys_exit as tp_btf need no tracefs mount.
 */
#ifndef MP_MAP_BPF_H
#define MP_MAP_BPF_H

#include "resource.bpf.h"
#include "stack.bpf.h"

#define PAGE_UP(x)    (((x) + MP_PAGE_SIZE - 1) & ~(MP_PAGE_SIZE - 1))

#define PROT_EXEC     4
#define MAP_ANONYMOUS 0x20
#define MAP_HUGETLB   0x40000
#define MREMAP_FIXED  2

/* mmap rounds a length up to the page size of the pool it asks for: 2 MiB, or named in the flags.
 */
static __always_inline u64 mmap_len(u64 len, u64 flags)
{
	u32 shift = flags >> 26 & 63;
	u64 size = MP_PAGE_SIZE;

	if (flags & MAP_HUGETLB)
		size = shift ? 1ull << shift : 2ull << 20;
	return (len + size - 1) & ~(size - 1);
}

/* x86-64 numbers. */
enum { NR_MMAP = 9, NR_MUNMAP = 11, NR_BRK = 12, NR_MREMAP = 25, NR_MADVISE = 28 };

/* By calls that entered before and after a moment, so that one can wait for the former alone. */
static __always_inline void count_open(const struct thread *t, s64 n)
{
	u32 space = t->space;
	struct mp_space_loss *s = bpf_map_lookup_elem(&space_loss, &space);

	/* madvise may last for seconds, and maps nothing. */
	if (s && t->call.nr != NR_MADVISE)
		__sync_fetch_and_add(&s->open[t->call.epoch & 1], n);
}

static __always_inline void call_enter(struct pt_regs *regs, struct thread *t, u64 nr)
{
	struct open_call *c = &t->call;

	c->args[0] = regs->di;
	c->args[1] = regs->si;
	c->args[2] = regs->dx;
	c->args[3] = regs->r10;
	c->args[4] = regs->r8;
	c->seq_entry = next_seq();
	c->old_brk = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm, brk);
	c->nr = nr;
	c->epoch = mp_epoch & 1;
	count_open(t, 1);
}

/* Other code at an address from now on. */
static __always_inline void count_code(u32 space)
{
	struct mp_space_loss *s = bpf_map_lookup_elem(&space_loss, &space);

	if (s)
		__sync_fetch_and_add(&s->code, 1);
	__sync_fetch_and_add(&mp_code_changes, 1);
}

static __always_inline void send_map(struct thread *t, u64 stack, u64 start, u64 end, u32 kind)
{
	const struct open_call *c = &t->call;
	MP_RECORD(map) r = {};

	r.ev.stack = stack;
	fill_hdr(&r.hdr, MP_EV_MAP, sizeof(r), t->space);
	r.ev.start = start;
	r.ev.end = end;
	r.ev.seq_entry = c->seq_entry;
	r.ev.kind = kind;
	r.ev.inside = t->alloc.sp ? MP_INSIDE_ALLOC : MP_INSIDE_NONE;
	r.ev.tid = bpf_get_current_pid_tgid();
	if (kind == MP_MAP_MMAP) {
		r.ev.prot = c->args[2];
		r.ev.flags = c->args[3];
	}
	if (r.ev.prot & PROT_EXEC && !(r.ev.flags & MAP_ANONYMOUS)) {
		count_code(t->space);
		send_now(&r, sizeof(r), MP_CLASS_MAP);
	} else {
		send_topo(&r, sizeof(r), MP_CLASS_MAP);
		if (kind == MP_MAP_MMAP)
			name_mapping(t->space, start, end - start);
	}
}

static __always_inline u64 send_unmap(u32 space, u64 start, u64 end, u64 seq_entry)
{
	MP_RECORD(unmap) r = {};

	fill_hdr(&r.hdr, MP_EV_UNMAP, sizeof(r), space);
	r.ev.start = start;
	r.ev.end = end;
	r.ev.seq_entry = seq_entry;
	send_topo(&r, sizeof(r), MP_CLASS_MAP);
	return r.hdr.seq;
}

static __always_inline void munmap_enter(struct pt_regs *regs, struct thread *t)
{
	u64 start = regs->di, len = regs->si;

	/* The kernel refuses these before it touches anything. */
	if (start & (MP_PAGE_SIZE - 1) || !len || start + len < start || (start + len) >> 56)
		return;
	call_enter(regs, t, NR_MUNMAP);
	t->call.seq_entry = send_unmap(t->space, start, start + PAGE_UP(len), 0);
}

/* Until then the range may still have been mapped. */
static __always_inline void munmap_exit(struct thread *t)
{
	MP_RECORD(unmap_end) r = {};

	fill_hdr(&r.hdr, MP_EV_UNMAP_END, sizeof(r), t->space);
	r.ev.start = t->call.args[0];
	r.ev.end = t->call.args[0] + PAGE_UP(t->call.args[1]);
	r.ev.seq_entry = t->call.seq_entry;
	send_topo(&r, sizeof(r), MP_CLASS_MAP);
}

static __always_inline void mremap_exit(struct thread *t, u64 stack, u64 ret)
{
	const struct open_call *c = &t->call;
	MP_RECORD(remap) r = {};

	r.ev.stack = stack;
	fill_hdr(&r.hdr, MP_EV_REMAP, sizeof(r), t->space);
	r.ev.old_start = c->args[0];
	r.ev.old_len = PAGE_UP(c->args[1]);
	r.ev.new_start = ret;
	r.ev.new_len = PAGE_UP(c->args[2]);
	r.ev.flags = c->args[3];
	r.ev.seq_entry = c->seq_entry;
	r.ev.tid = bpf_get_current_pid_tgid();
	send_topo(&r, sizeof(r), MP_CLASS_MAP);
}

static __always_inline void madvise_exit(struct thread *t, u64 stack)
{
	const struct open_call *c = &t->call;
	MP_RECORD(advise) r = {};

	r.ev.stack = stack;
	fill_hdr(&r.hdr, MP_EV_ADVISE, sizeof(r), t->space);
	r.ev.start = c->args[0];
	r.ev.end = c->args[0] + PAGE_UP(c->args[1]);
	r.ev.advice = c->args[2];
	r.ev.tid = bpf_get_current_pid_tgid();
	send_topo(&r, sizeof(r), MP_CLASS_PAGE);
}

static __always_inline void count_op(u32 space)
{
	struct mp_space_loss *s = bpf_map_lookup_elem(&space_loss, &space);

	if (s)
		__sync_fetch_and_add(&s->map_ops, 1);
}

static __always_inline int is_map_call(long id)
{
	return id == NR_MMAP || id == NR_MUNMAP || id == NR_BRK || id == NR_MREMAP ||
	       id == NR_MADVISE;
}

/* clone, fork, vfork, clone3 */
static __always_inline int is_fork_call(long id)
{
	return (id >= 56 && id <= 58) || id == 435;
}

/* The 32-bit table (int 0x80 from any program) numbers calls otherwise. Its mapping calls are not
 * decoded: they are a named loss, so that nothing they touched stays exact. */
#define TS_COMPAT 2

static __always_inline int is_compat(void)
{
	return CURRENT(thread_info.status) & TS_COMPAT;
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

static __always_inline int call_entered(struct pt_regs *regs, long id)
{
	struct thread *t;

	if (!maybe_followed(current_tgid()))
		return 0;
	if (is_compat()) {
		compat_enter(id);
		return 0;
	}
	if (!is_map_call(id) && !is_fork_call(id))
		return 0;
	t = current_thread(MP_CLASS_MAP);
	if (!t)
		return 0;
	if (is_fork_call(id)) {
		t->fork_entry = next_seq();
		return 0;
	}
	count_op(t->space);
#ifdef MP_PREEMPTIBLE
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
#endif
	if (id == NR_MUNMAP)
		munmap_enter(regs, t);
	else
		call_enter(regs, t, id);
	return 0;
}

/* The call that was open on this thread has returned ret. */
static __always_inline void call_exit(void *ctx, struct thread *t, u64 nr, u64 ret)
{
	u64 old_end = PAGE_UP(t->call.old_brk), new_end = PAGE_UP(ret), stack;

	if (nr == NR_BRK && new_end <= old_end) {
		if (new_end < old_end)
			send_unmap(t->space, new_end, old_end, t->call.seq_entry);
		return;
	}
	stack = user_stack(ctx, t, 1);
	if (nr == NR_MMAP)
		send_map(t, stack, ret, ret + mmap_len(t->call.args[1], t->call.args[3]),
			 MP_MAP_MMAP);
	else if (nr == NR_BRK)
		send_map(t, stack, old_end, new_end, MP_MAP_BRK);
	else if (nr == NR_MREMAP)
		mremap_exit(t, stack, ret);
	else if (nr == NR_MADVISE)
		madvise_exit(t, stack);
}

static __always_inline int call_returned(void *ctx, long id, long ret)
{
	struct thread *t;
	int failed = ret < 0 && ret > -4096;

	if (!is_map_call(id) || is_compat())
		return 0;
	t = known_thread();
	if (!t || !t->space)
		return 0;
	count_op(t->space);
	/* No entry: the call began before we did. */
	if (t->call.nr != id)
		return 0;
	count_open(t, -1);
	t->call.nr = 0;
	/* Refused half way: a munmap, sent on entry, by the map count or a sealed range; an mremap
	 * to a fixed place after it had moved some of several VMAs (Linux 6.17). Extents are
	 * unknown until the next walk, and that is a loss with a name. */
	if ((id == NR_MUNMAP || (id == NR_MREMAP && t->call.args[3] & MREMAP_FIXED)) && failed)
		count_loss(MP_LOSS_CALL_HALF, MP_CLASS_MAP, t->space);
	else if (id == NR_MUNMAP)
		munmap_exit(t);
	else if (!failed)
		call_exit(ctx, t, id, ret);
	return 0;
}

#ifdef MP_PREEMPTIBLE
SEC("tp/raw_syscalls/sys_enter")
int on_sys_enter(struct trace_event_raw_sys_enter *ctx)
{
	return call_entered(NULL, ctx->id);
}

SEC("tp/raw_syscalls/sys_exit")
int on_sys_exit(struct trace_event_raw_sys_exit *ctx)
{
	return call_returned(ctx, ctx->id, ctx->ret);
}
#else
SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long id)
{
	return call_entered(regs, id);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	return call_returned(ctx, regs->orig_ax, ret);
}
#endif

#endif
