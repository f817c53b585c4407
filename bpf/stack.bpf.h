/* SPDX-License-Identifier: GPL-2.0-only
 * The user stack by frame pointers, each stack sent once and then named by its id. */
#ifndef MP_STACK_BPF_H
#define MP_STACK_BPF_H

#include "follow.bpf.h"

/* Stacks already sent: hash of (space, frames). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_STACKS);
	__type(key, u64);
	__type(value, u8);
} known_stacks SEC(".maps");

#define WINDOW	     1024
#define WINDOW_FIRST 512
#define FRAME	     16 /* what a frame pointer points at: its caller's, and the return address */
#define LOWEST_ADDR  0x10000 /* nothing is mapped below */
#define USER_CS	     0x33 /* 64-bit code */

struct stack_buf {
	struct mp_hdr hdr;
	struct mp_ev_stack ev;
	u64 frames[MP_STACK_DEPTH + 1];
	u32 extent; /* bytes above the stack pointer that the walk needed, as far as WINDOW */
	u32 len; /* of window */
	u64 base; /* address of window */
	u8 window[WINDOW];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_buf);
} stack_scratch SEC(".maps");

/* Here and below a function that is not static is one the verifier checks by itself, once: inlined,
 * each depth of stack would be a path of its own through all that follows. */

/* Copies up to want bytes of stack from addr up and returns how many: a read for each frame costs
 * more than all the rest of the walk. It ends at the page, since what lies behind need not be
 * there, but is never less than a frame. */
__noinline int read_window(struct stack_buf *buf, u64 addr, u32 want)
{
	u32 len = MP_PAGE_SIZE - (addr & (MP_PAGE_SIZE - 1));

	if (!buf)
		return 0;
	if (len > want)
		len = want;
	if (len > WINDOW)
		len = WINDOW;
	if (len < FRAME)
		len = FRAME;
	buf->base = addr;
	buf->len = bpf_probe_read_user(buf->window, len, (void *)addr) ? 0 : len;
	return buf->len;
}

static __always_inline u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/* The kernel's own walk is right where ours is not: 32-bit code has other frames, and a uretprobe
 * has put the address of its trampoline in place of a return address. */
static __always_inline int needs_kernel_walk(struct task_struct *task, struct pt_regs *regs)
{
	if (regs->cs != USER_CS)
		return 1;
	return bpf_core_field_exists(task->utask) && task->utask && task->utask->return_instances;
}

static __always_inline u32 kernel_walk(void *ctx, struct stack_buf *buf)
{
	long len = bpf_get_stack(ctx, buf->frames, MP_STACK_DEPTH * 8, BPF_F_USER_STACK);

	return len < 8 ? 0 : (u32)len / 8;
}

/* What is no address ends the walk unread: code without frame pointers leaves any value in the
 * register, and a refused read is a page fault of the kernel, dearer than everything else here. */
static __always_inline int is_addr(u64 v)
{
	return v >= LOWEST_ADDR && v < (1ull << 56);
}

__noinline u32 walk_frames(struct stack_buf *buf, u64 ip, u64 fp, u64 sp)
{
	u64 off, ret;
	u32 n;

	if (!buf)
		return 0;
	buf->frames[0] = ip;
	buf->extent = FRAME;
	for (n = 1; n < MP_STACK_DEPTH; n++) {
		if (!is_addr(fp) || fp % 8)
			break;
		off = fp - buf->base;
		if (buf->len < FRAME || off > buf->len - FRAME) {
			if (!read_window(buf, fp, WINDOW_FIRST))
				break;
			off = 0;
		}
		if (off > WINDOW - FRAME)
			break;
		ret = *(u64 *)(buf->window + off + 8);
		if (!is_addr(ret))
			break;
		buf->frames[n] = ret;
		if (fp - sp <= WINDOW - FRAME)
			buf->extent = fp - sp + FRAME;
		fp = *(u64 *)(buf->window + off);
	}
	return n;
}

__noinline u64 hash_frames(struct stack_buf *buf, u32 n, u64 hash)
{
	u32 i;

	if (!buf)
		return 0;
	for (i = 0; i < MP_STACK_DEPTH && i < n; i++)
		hash = mix(hash, buf->frames[i]);
	return hash;
}

/* A function without a frame that is interrupted in its own code hides its caller from the chain;
 * the word on top of the stack is kept as a raw copy so that the reader can restore the caller
 * where the unwind tables say it lies there. Data near the stack or no address at all cannot be a
 * return address. */
static __always_inline u64 stack_top(struct stack_buf *buf, u64 sp)
{
	u64 top = buf->len < 8 ? 0 : *(u64 *)buf->window;

	if (!is_addr(top) || top - sp + (8 << 20) < (16 << 20))
		return 0;
	return top;
}

static __always_inline int send_stack(struct stack_buf *buf, u32 space, u64 id, u32 n, int topology)
{
	u32 size = sizeof(buf->hdr) + sizeof(buf->ev) + (n + 1) * 8;
	u8 one = 1;

	if (size > offsetof(struct stack_buf, extent))
		return 0;
	fill_hdr(&buf->hdr, MP_EV_STACK, size, space);
	buf->ev.id = id;
	buf->ev.n = n;
	buf->ev.method = MP_UNWIND_FP;
	buf->ev.truncated = n == MP_STACK_DEPTH;
	buf->ev.raw = 8;
	if (topology ? bpf_ringbuf_output(&topo_ring, buf, size, TOPO_WAKE)
		     : bpf_ringbuf_output(&detail_ring, buf, size, DETAIL_WAKE)) {
		count_loss(topology ? MP_LOSS_TOPO_RING : MP_LOSS_DETAIL_RING, MP_CLASS_MAX, space);
		return 0;
	}
	if (bpf_map_update_elem(&known_stacks, &id, &one, BPF_ANY))
		count_loss(MP_LOSS_STACK_MAP, MP_CLASS_MAX, space);
	return 1;
}

/* Id of the stack the thread is on, 0 when unreadable. */
static __always_inline u64 user_stack(void *ctx, struct thread *t, int topology)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 id, top;
	struct stack_buf *buf;
	u32 zero = 0, n;

	buf = bpf_map_lookup_elem(&stack_scratch, &zero);
	if (!buf)
		return 0;
	/* What the last walk needed is what this one will. */
	read_window(buf, regs->sp, t->extent ? t->extent : WINDOW_FIRST);
	top = stack_top(buf, regs->sp);
	n = needs_kernel_walk(task, regs) ? kernel_walk(ctx, buf)
					  : walk_frames(buf, regs->ip, regs->bp, regs->sp);
	if (!n) {
		count_loss(MP_LOSS_STACK_FAIL, MP_CLASS_MAX, t->space);
		return 0;
	}
	t->extent = buf->extent;
	id = mix(hash_frames(buf, n, mix(0x6d656d70726f76ull, t->space)), top);
	if (!id)
		id = 1;
	if (t->known[id % MP_KNOWN_STACKS] == id)
		return id;
	if (!bpf_map_lookup_elem(&known_stacks, &id)) {
		if (n <= MP_STACK_DEPTH)
			buf->frames[n] = top;
		if (!send_stack(buf, t->space, id, n, topology))
			return 0;
	}
	t->known[id % MP_KNOWN_STACKS] = id;
	return id;
}

#endif
