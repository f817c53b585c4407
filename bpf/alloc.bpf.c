/* SPDX-License-Identifier: GPL-2.0-only
 * Probes on an allocator's functions. What can fail takes effect on return, free on entry: once it
 * returned another thread may own the block. Nested calls are one allocation, the outermost. An
 * object of its own: most recordings never load it. Its maps, and its variables, are those of
 * memprov.bpf.c; so it may define no variable. */
#include "emit.bpf.h"
#include "follow.bpf.h"
#include "stack.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MP_ALLOC_RING_BYTES);
} alloc_ring SEC(".maps");

const volatile u32 cfg_alloc_wake = MP_ALLOC_RING_BYTES / 4;
const volatile u64 cfg_min_bytes = 0; /* smaller allocations are not sent */

static __always_inline void send_alloc(void *rec, u32 size)
{
	struct mp_hdr *hdr = rec;

	if (bpf_ringbuf_output(&alloc_ring, rec, size, wake_if(&alloc_ring, cfg_alloc_wake)))
		count_loss(MP_LOSS_ALLOC_RING, MP_CLASS_ALLOC, hdr->space);
}

/* While a call is open the kernel has put a trampoline in place of its return address. */
static __always_inline int returns_to_us(u64 sp)
{
	u64 to = 0, trampoline = BPF_CORE_READ(bpf_get_current_task_btf(), mm,
					       uprobes_state.xol_area, vaddr);

	return !bpf_probe_read_user(&to, sizeof(to), (void *)sp) && to == trampoline;
}

/* Is the thread in a call of an allocator, from which it calls, or into whose place it jumped? A
 * call may also be over without a return. */
static __always_inline int is_nested(struct thread *t, u64 sp)
{
	if (!t->alloc.sp)
		return 0;
	if (sp <= t->alloc.sp && returns_to_us(t->alloc.sp))
		return 1;
	count_loss(MP_LOSS_ALLOC_LEFT, MP_CLASS_ALLOC, t->space);
	t->alloc.sp = 0;
	return 0;
}

/* A probe of user space may be interrupted by one of another thread on the same cpu, which then
 * must do without the scratch space of a stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} stack_busy SEC(".maps");

static __always_inline u64 caller_stack(void *ctx, struct thread *t)
{
	u32 zero = 0;
	u64 *busy = bpf_map_lookup_elem(&stack_busy, &zero), stack;

	if (!busy)
		return 0;
	if (__sync_fetch_and_add(busy, 1)) {
		__sync_fetch_and_add(busy, -1);
		count_loss(MP_LOSS_STACK_FAIL, MP_CLASS_MAX, t->space);
		return 0;
	}
	stack = user_stack(ctx, t, 1);
	__sync_fetch_and_add(busy, -1);
	return stack;
}

static __always_inline void read_args(struct alloc_call *c, struct pt_regs *ctx, u32 args)
{
	c->old_addr = c->out = 0;
	if (args == MP_ARGS_OLD_SIZE || args == MP_ARGS_OLD_COUNT_SIZE)
		c->old_addr = ctx->di;
	if (args == MP_ARGS_OUT_ALIGN_SIZE)
		c->out = ctx->di;
	/* A product too large fails, and what fails is not sent. */
	if (args == MP_ARGS_SIZE)
		c->bytes = ctx->di;
	else if (args == MP_ARGS_COUNT_SIZE)
		c->bytes = ctx->di * ctx->si;
	else if (args == MP_ARGS_ALIGN_SIZE || args == MP_ARGS_OLD_SIZE)
		c->bytes = ctx->si;
	else if (args == MP_ARGS_OLD_COUNT_SIZE)
		c->bytes = ctx->si * ctx->dx;
	else
		c->bytes = ctx->dx;
}

SEC("uprobe")
int on_alloc_enter(struct pt_regs *ctx)
{
	struct thread *t = current_thread(MP_CLASS_ALLOC);
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (!t || is_nested(t, ctx->sp))
		return 0;
	read_args(&t->alloc, ctx, cookie & 0xff);
	/* The stack is whole now; behind the return address put in place by the return probe it is
	 * not. */
	t->alloc.stack =
		t->alloc.old_addr || t->alloc.bytes >= cfg_min_bytes ? caller_stack(ctx, t) : 0;
	t->alloc.family = cookie >> 8;
	t->alloc.seq_entry = next_seq();
	t->alloc.sp = ctx->sp;
	return 0;
}

SEC("uprobe")
int on_free(struct pt_regs *ctx)
{
	MP_RECORD(free) r = {};
	struct thread *t;

	if (!ctx->di)
		return 0;
	t = current_thread(MP_CLASS_ALLOC);
	if (!t || is_nested(t, ctx->sp))
		return 0;
	fill_hdr(&r.hdr, MP_EV_FREE, sizeof(r), t->space);
	r.ev.addr = ctx->di;
	r.ev.tid = bpf_get_current_pid_tgid();
	r.ev.family = bpf_get_attach_cookie(ctx) >> 8;
	send_alloc(&r, sizeof(r));
	return 0;
}

/* What it returns is not seen. What it calls is, unless it is no allocator's function. */
SEC("uprobe")
int on_unseen(struct pt_regs *ctx)
{
	struct thread *t = current_thread(MP_CLASS_ALLOC);

	if (t && !is_nested(t, ctx->sp))
		count_loss(MP_LOSS_ALLOC_GAP, MP_CLASS_ALLOC, t->space);
	return 0;
}

static __always_inline void send_new(struct thread *t, const struct alloc_call *c, u64 addr)
{
	MP_RECORD(alloc) r = {};

	fill_hdr(&r.hdr, MP_EV_ALLOC, sizeof(r), t->space);
	r.ev.addr = addr;
	r.ev.bytes = c->bytes;
	r.ev.seq_entry = c->seq_entry;
	r.ev.stack = c->stack;
	r.ev.tid = bpf_get_current_pid_tgid();
	r.ev.family = c->family;
	send_alloc(&r, sizeof(r));
}

static __always_inline void send_resized(struct thread *t, const struct alloc_call *c, u64 addr)
{
	MP_RECORD(realloc) r = {};

	fill_hdr(&r.hdr, MP_EV_REALLOC, sizeof(r), t->space);
	r.ev.old_addr = c->old_addr;
	r.ev.addr = addr;
	r.ev.bytes = c->bytes;
	r.ev.seq_entry = c->seq_entry;
	r.ev.stack = c->stack;
	r.ev.tid = bpf_get_current_pid_tgid();
	r.ev.family = c->family;
	send_alloc(&r, sizeof(r));
}

/* Where the result lies, 0: the call failed. */
static __always_inline u64 result(const struct alloc_call *c, u64 ret)
{
	u64 addr = 0;

	if (!c->out)
		return ret;
	if ((u32)ret || bpf_probe_read_user(&addr, sizeof(addr), (void *)c->out))
		return 0;
	return addr;
}

SEC("uretprobe")
int on_alloc_return(struct pt_regs *ctx)
{
	struct thread *t = known_thread();
	struct alloc_call *c;
	u64 addr;

	/* Returns of nested calls, and of those that entered before the probes were there. */
	if (!t || !t->alloc.sp || ctx->sp != t->alloc.sp + 8)
		return 0;
	c = &t->alloc;
	addr = result(c, ctx->ax);
	/* realloc(p, 0) gives p back, here or by returning a block of no bytes. */
	if (c->old_addr && (addr || !c->bytes))
		send_resized(t, c, addr);
	else if (!c->old_addr && addr && c->bytes >= cfg_min_bytes)
		send_new(t, c, addr);
	c->sp = 0;
	return 0;
}

/* ---- static probes: the adapter's and others' ---- */

static __always_inline u32 usdt_place(u32 reg)
{
	switch (reg) {
	case 0:
		return bpf_core_field_offset(struct pt_regs, ax);
	case 1:
		return bpf_core_field_offset(struct pt_regs, bx);
	case 2:
		return bpf_core_field_offset(struct pt_regs, cx);
	case 3:
		return bpf_core_field_offset(struct pt_regs, dx);
	case 4:
		return bpf_core_field_offset(struct pt_regs, si);
	case 5:
		return bpf_core_field_offset(struct pt_regs, di);
	case 6:
		return bpf_core_field_offset(struct pt_regs, bp);
	case 7:
		return bpf_core_field_offset(struct pt_regs, sp);
	case 8:
		return bpf_core_field_offset(struct pt_regs, r8);
	case 9:
		return bpf_core_field_offset(struct pt_regs, r9);
	case 10:
		return bpf_core_field_offset(struct pt_regs, r10);
	case 11:
		return bpf_core_field_offset(struct pt_regs, r11);
	case 12:
		return bpf_core_field_offset(struct pt_regs, r12);
	case 13:
		return bpf_core_field_offset(struct pt_regs, r13);
	case 14:
		return bpf_core_field_offset(struct pt_regs, r14);
	default:
		return bpf_core_field_offset(struct pt_regs, r15);
	}
}

static __always_inline u64 usdt_arg(struct pt_regs *ctx, u64 cookie, u32 n)
{
	u32 spec = cookie >> n * MP_USDT_BITS, unused = 64 - (8u << (spec >> 6 & 3));
	u64 value = 0;

	if (!(spec & MP_USDT_THERE))
		return 0;
	/* The verifier wants a place known beforehand of what is read from ctx directly. */
	bpf_probe_read_kernel(&value, sizeof(value), (void *)ctx + usdt_place(spec & MP_USDT_REG));
	if (spec & MP_USDT_MEMORY) {
		value += (s64)((s32)(spec << (20 - MP_USDT_OFFSET)) >> 20);
		if (bpf_probe_read_user(&value, sizeof(value), (void *)value))
			return 0;
	}
	value <<= unused;
	return spec & MP_USDT_SIGNED ? (u64)((s64)value >> unused) : value >> unused;
}

SEC("uprobe")
int on_sample(struct pt_regs *ctx)
{
	MP_RECORD(sample) r = {};
	struct thread *t = current_thread(MP_CLASS_ALLOC);
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (!t)
		return 0;
	r.ev.addr = usdt_arg(ctx, cookie, 0);
	r.ev.bytes = usdt_arg(ctx, cookie, 1);
	r.ev.weighted = usdt_arg(ctx, cookie, 2);
	if (r.ev.weighted < r.ev.bytes)
		r.ev.weighted = r.ev.bytes;
	r.ev.stack = caller_stack(ctx, t);
	r.ev.tid = bpf_get_current_pid_tgid();
	r.ev.family = MP_FAMILY_MALLOC;
	fill_hdr(&r.hdr, MP_EV_SAMPLE, sizeof(r), t->space);
	send_alloc(&r, sizeof(r));
	return 0;
}

SEC("uprobe")
int on_sample_end(struct pt_regs *ctx)
{
	MP_RECORD(free) r = {};
	struct thread *t = current_thread(MP_CLASS_ALLOC);

	if (!t)
		return 0;
	r.ev.addr = usdt_arg(ctx, bpf_get_attach_cookie(ctx), 0);
	r.ev.tid = bpf_get_current_pid_tgid();
	r.ev.family = MP_FAMILY_MALLOC;
	fill_hdr(&r.hdr, MP_EV_FREE, sizeof(r), t->space);
	send_alloc(&r, sizeof(r));
	return 0;
}

SEC("uprobe")
int on_sampler(struct pt_regs *ctx)
{
	MP_RECORD(sampler) r = {};
	struct thread *t = current_thread(MP_CLASS_ALLOC);

	if (!t)
		return 0;
	r.ev.interval = usdt_arg(ctx, bpf_get_attach_cookie(ctx), 0);
	fill_hdr(&r.hdr, MP_EV_SAMPLER, sizeof(r), t->space);
	send_alloc(&r, sizeof(r));
	return 0;
}

SEC("uprobe")
int on_sample_lost(struct pt_regs *ctx)
{
	struct thread *t = current_thread(MP_CLASS_ALLOC);

	if (t)
		count_loss(MP_LOSS_ALLOC_GAP, MP_CLASS_ALLOC, t->space);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
