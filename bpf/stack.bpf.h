/* SPDX-License-Identifier: GPL-2.0-only
 * The user stack, sent once and then named by its id. */
#ifndef MP_STACK_BPF_H
#define MP_STACK_BPF_H

#include "python.bpf.h"
#include "unwind.bpf.h"

/* Stacks already sent: hash of (space, frames). One that has not been met for long makes room, and
 * is sent again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MP_MAX_STACKS);
	__type(key, u64);
	__type(value, u8);
} known_stacks SEC(".maps");

#define USER_CS	  0x33 /* 64-bit code */

#define COPY_ROOM 16384u /* for registers and a copy, a power of two */

struct stack_buf {
	struct mp_hdr hdr;
	struct mp_ev_stack ev;
	u64 frames[MP_STACK_DEPTH + COPY_ROOM / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_buf);
} stack_scratch SEC(".maps");

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

	buf->ev.by_fp0 = buf->ev.by_fp1 = ~0ull;
	buf->ev.method = MP_UNWIND_KERNEL;
	buf->ev.truncated = len == MP_STACK_DEPTH * 8 ? MP_STACK_DEEP : MP_STACK_WHOLE;
	return len < 8 ? 0 : (u32)len / 8;
}

static __always_inline void mark_by_fp(struct mp_ev_stack *ev, u32 i)
{
	if (i < 64)
		ev->by_fp0 |= 1ull << i;
	else
		ev->by_fp1 |= 1ull << (i & 63);
}

__noinline u32 walk_frames(struct stack_buf *buf, struct walk *w, struct memo *m)
{
	int end = MP_STACK_DEEP;
	u32 n;

	if (!buf || !w || !m)
		return 0;
	buf->ev.by_fp0 = buf->ev.by_fp1 = 0;
	buf->ev.method = 0;
	buf->frames[0] = w->ip;
	for (n = 1; n < MP_STACK_DEPTH; n++) {
		end = step(w, m);
		if (w->by_fp)
			mark_by_fp(&buf->ev, n - 1);
		buf->ev.method |= w->by_fp ? MP_UNWIND_FP : MP_UNWIND_TABLE;
		if (end != MP_STACK_GOES_ON)
			break;
		buf->frames[n] = w->ip;
	}
	buf->ev.truncated = n == MP_STACK_DEPTH ? MP_STACK_DEEP : end;
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

/* A function without a frame that is interrupted in its own code hides its caller from the chain of
 * frame pointers; the word on top of the stack is kept as a raw copy so that the reader can restore
 * the caller where the unwind tables say it lies there. Only an address of code that we know can be
 * a return address: data would make a stack of its own of each value. */
static __always_inline u64 stack_top(struct walk *w, struct memo *m, u64 sp)
{
	u64 top = 0;

	if (!read_word(w, m, sp, &top) || !is_addr(top))
		return 0;
	return search_ranges(w->whose >> 32, top) < MP_MAX_RANGES ? top : 0;
}

/* ---- what tables do not lead through is copied, to be unwound when they are there ---- */

u64 mp_copies_since = 0;
u32 mp_copies = 0, mp_copies_sent = 0; /* since then */

/* Tables end where they have no rule that we can follow, and what frame pointers say of code whose
 * table is still being built is worth little. */
static __always_inline int wants_copy(struct stack_buf *buf, struct walk *w, struct thread *t)
{
	if (buf->ev.truncated == MP_STACK_CUT && w->rule.cfa != MP_CFA_NONE)
		return 1;
	return buf->ev.method & MP_UNWIND_FP && !knows_code(t->space, t->code);
}

/* The target pays for the copy and the trace keeps it. */
static __always_inline int may_copy(u32 space)
{
	u64 now = bpf_ktime_get_ns();

	if (now - mp_copies_since > 1000000000ull) {
		mp_copies_since = now;
		mp_copies = mp_copies_sent = 0;
	}
	if (__sync_fetch_and_add(&mp_copies, 1) < MP_COPIES_A_SECOND)
		return 1;
	count_loss(MP_LOSS_COPIES, MP_CLASS_MAX, space);
	return 0;
}

/* Bytes that lie behind the n frames now: as much of the stack as is in memory. */
__noinline u32 copy_stack(struct stack_buf *buf, u32 n)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 sp = regs->sp;
	u32 len = MP_PAGE_SIZE - (sp & (MP_PAGE_SIZE - 1));
	u64 *to;

	if (!buf || n > MP_STACK_DEPTH || sp & 7)
		return 0;
	to = buf->frames + n;
	bpf_probe_read_kernel(to, MP_COPY_REGS, regs);
	to += MP_COPY_REGS / 8;
	if (!bpf_probe_read_user(to, MP_COPY_STACK, (void *)sp))
		return MP_COPY_REGS + MP_COPY_STACK;
	if (!bpf_probe_read_user(to, (len & (MP_PAGE_SIZE - 1)) + MP_PAGE_SIZE, (void *)sp))
		return MP_COPY_REGS + (len & (MP_PAGE_SIZE - 1)) + MP_PAGE_SIZE;
	if (len == MP_PAGE_SIZE || bpf_probe_read_user(to, len & (MP_PAGE_SIZE - 1), (void *)sp))
		return 0;
	return MP_COPY_REGS + len;
}

#define SAVED_REGS 6 /* those that a function keeps for its caller come first: r15 to rbx */

/* Two stacks are the same when all of the copy is but for the registers in which a function keeps
 * what is its own. */
__noinline u64 hash_copy(struct stack_buf *buf, u32 n, u32 raw, u64 hash)
{
	u64 *from;
	u32 i;

	if (!buf)
		return 0;
	from = buf->frames + (n & MP_STACK_DEPTH);
	for (i = 0; i < SAVED_REGS; i++)
		hash = mix(hash, from[i]);
	for (i = MP_COPY_REGS / 8; i < (MP_COPY_REGS + MP_COPY_STACK) / 8 && i < raw / 8; i++)
		hash = mix(hash, from[i]);
	return hash;
}

/* The id of the stack with its copy; 0: one more cannot be sent. */
static __always_inline u64 copied_id(struct stack_buf *buf, u32 n, u32 raw, u64 id, u32 space)
{
	id = hash_copy(buf, n, raw, id);
	if (id && bpf_map_lookup_elem(&known_stacks, &id))
		return id;
	if (id && __sync_fetch_and_add(&mp_copies_sent, 1) < MP_SENT_A_SECOND)
		return id;
	count_loss(MP_LOSS_COPIES, MP_CLASS_MAX, space);
	return 0;
}

static __always_inline int send_stack(struct stack_buf *buf, u32 space, u64 id, u32 n, u32 raw,
				      int topology)
{
	/* Masked: the verifier must see that it is in the buffer. */
	u32 size = sizeof(buf->hdr) + sizeof(buf->ev) + n * 8 + (raw & (COPY_ROOM - 1));
	u8 one = 1;

	fill_hdr(&buf->hdr, MP_EV_STACK, size, space);
	buf->ev.id = id;
	buf->ev.n = n;
	buf->ev.raw = raw;
	if (lose(topology ? cfg_lose_topology : cfg_lose_detail, buf->hdr.seq) ||
	    (topology ? bpf_ringbuf_output(&topo_ring, buf, size, TOPO_WAKE)
		      : bpf_ringbuf_output(&detail_ring, buf, size, DETAIL_WAKE))) {
		count_loss(topology ? MP_LOSS_TOPO_RING : MP_LOSS_DETAIL_RING, MP_CLASS_MAX, space);
		return 0;
	}
	if (bpf_map_update_elem(&known_stacks, &id, &one, BPF_ANY))
		count_loss(MP_LOSS_STACK_MAP, MP_CLASS_MAX, space);
	return 1;
}

/* How often the space's code has changed: a stack of other code at the same addresses is another
 * stack. */
static __always_inline u32 code_of(struct thread *t)
{
	u32 now = mp_code_changes, space = t->space;
	struct mp_space_loss *s;

	if (t->code_seen == now)
		return t->code;
	s = bpf_map_lookup_elem(&space_loss, &space);
	t->code = s ? s->code : 0;
	t->code_seen = now;
	return t->code;
}

static __always_inline void start_walk(struct walk *w, struct pt_regs *regs, struct thread *t)
{
	w->ip = regs->ip;
	w->sp = w->first_sp = regs->sp;
	w->bp = regs->bp;
	w->whose = (u64)t->space << 32 | (u32)(mp_unwind_generation * 0x9e3779b1u ^ code_of(t));
	w->also = 0;
	w->regs = (u64)regs;
	w->regs_in_user = 0;
	w->all_known = 1;
	w->bx_at = BX_IN_REGS;
	w->exact = 1;
	w->by_fp = 0;
	w->expect = t->extent;
	w->extent = 8;
	w->len = 0;
}

static __always_inline void start_memo(struct walk *w, struct memo *m)
{
	m->ip = w->ip;
	m->sp = w->sp;
	m->bp = w->bp;
	m->whose = w->whose;
	m->also = w->also;
	m->id = 0;
	m->nr = 0;
}

static __always_inline void end_memo(struct walk *w, struct memo *m, u64 id)
{
	m->id = id;
	m->extent = w->extent;
}

/* Python's frames lie behind the others: who reads them knows which C code runs which. */
__noinline u32 append_python(struct stack_buf *buf, struct python_walk *p, u32 n)
{
	u32 i, at;

	if (!buf || !p)
		return n;
	for (i = 0; i < MP_PYTHON_DEPTH && i < p->n; i++) {
		at = n + i;
		asm volatile("" : "+r"(at)); /* what is checked is what is used */
		if (at >= MP_STACK_DEPTH)
			break;
		buf->frames[at] = p->frames[i];
	}
	return n + i;
}

#ifdef MP_BASIC
/* Id of the stack the thread is on, 0 when unreadable. */
static __always_inline u64 user_stack(void *ctx, struct thread *t, int topology)
{
	struct stack_buf *buf;
	u32 zero = 0, i, n;
	u64 id;

	buf = bpf_map_lookup_elem(&stack_scratch, &zero);
	if (!buf)
		return 0;
	n = kernel_walk(ctx, buf);
	if (!n || n > MP_STACK_DEPTH) {
		count_loss(MP_LOSS_STACK_FAIL, MP_CLASS_MAX, t->space);
		return 0;
	}
	id = mix(0x6d656d70726f76ull, t->space ^ (u64)code_of(t) << 44);
	for (i = 0; i < MP_STACK_DEPTH && i < n; i++)
		id = mix(id, buf->frames[i]);
	if (!id)
		id = 1;
	if (t->known[id % MP_KNOWN_STACKS] == id)
		return id;
	if (!bpf_map_lookup_elem(&known_stacks, &id) &&
	    !send_stack(buf, t->space, id, n, 0, topology))
		return 0;
	t->known[id % MP_KNOWN_STACKS] = id;
	return id;
}
#else
/* Id of the stack the thread is on, 0 when unreadable. */
static __always_inline u64 user_stack(void *ctx, struct thread *t, int topology)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	struct stack_buf *buf;
	u64 id, copied, top = 0;
	u32 zero = 0, slot, n, raw = 0;
	struct python_walk *py;
	struct walk *w;
	struct memo *m;

	py = python_of(t);
	buf = bpf_map_lookup_elem(&stack_scratch, &zero);
	w = bpf_map_lookup_elem(&walk_scratch, &zero);
	slot = (u32)(regs->ip ^ regs->sp >> 4) % NR_MEMOS;
	m = bpf_map_lookup_elem(&memo_scratch, &slot);
	if (!buf || !w || !m)
		return 0;
	start_walk(w, regs, t);
	/* The same C code on another Python stack is another stack. */
	if (py)
		w->also = py->hash;
	if (needs_kernel_walk(task, regs)) {
		start_memo(w, m);
		spoil_memo(m);
		n = kernel_walk(ctx, buf);
	} else {
		id = read_window(w, regs->sp) ? recall(w, m) : 0;
		if (id && id == t->known[id % MP_KNOWN_STACKS])
			return id;
		start_memo(w, m);
		n = walk_frames(buf, w, m);
		if (buf->ev.by_fp0 & 1)
			top = stack_top(w, m, regs->sp);
	}
	if (!n || n > MP_STACK_DEPTH) { /* more it never is: Linux 6.1 must be told */
		count_loss(MP_LOSS_STACK_FAIL, MP_CLASS_MAX, t->space);
		return 0;
	}
	/* The compiler may keep n where the verifier has not seen the comparison: said once more.
	 */
	barrier_var(n);
	n &= MP_STACK_DEPTH;
	t->extent = w->extent;
	if (py)
		n = append_python(buf, py, n);
	if (n > MP_STACK_DEPTH)
		return 0;
	if (wants_copy(buf, w, t)) {
		spoil_memo(m);
		raw = may_copy(t->space) ? copy_stack(buf, n) : 0;
	}
	id = mix(0x6d656d70726f76ull, t->space ^ (u64)buf->ev.method << 32 ^
					      (u64)buf->ev.truncated << 40 ^ (u64)t->code << 44);
	id = hash_frames(buf, n, id);
	copied = raw ? copied_id(buf, n, raw, id, t->space) : 0;
	if (copied)
		top = 0;
	else
		raw = 0;
	id = copied ? copied : mix(id, top);
	if (!id)
		id = 1;
	if (t->known[id % MP_KNOWN_STACKS] == id) {
		end_memo(w, m, id);
		return id;
	}
	if (!bpf_map_lookup_elem(&known_stacks, &id)) {
		if (top)
			buf->frames[n] = top;
		if (py)
			send_codes(py);
		if (!send_stack(buf, t->space, id, n, top ? 8 : raw, topology))
			return 0;
	}
	t->known[id % MP_KNOWN_STACKS] = id;
	end_memo(w, m, id);
	return id;
}
#endif

#endif
