/* SPDX-License-Identifier: GPL-2.0-only
 * Maps shared by all programs, and the one way to send a record: number it, ask for room, count the
 * loss by cause when there is none. Nothing here can fail without naming a row of loss.def. */
#ifndef MP_EMIT_BPF_H
#define MP_EMIT_BPF_H

#include "shared/event.h"
#include "shared/config.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* Topology has its own ring: a storm of faults must never cost a munmap. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MP_TOPO_RING_BYTES);
} topo_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MP_DETAIL_RING_BYTES);
} detail_ring SEC(".maps");

/* tgid -> space id (and MP_TARGET_JOINED): whom we follow. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_TARGETS);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/* space id -> what was lost of it, by class. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct mp_space_loss);
} space_loss SEC(".maps");

/* Stacks already sent: hash of (space, frames). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_STACKS);
	__type(key, u64);
	__type(value, u8);
} known_stacks SEC(".maps");

struct stack_buf {
	struct mp_hdr hdr;
	struct mp_ev_stack ev;
	u64 frames[MP_STACK_DEPTH + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack_buf);
} stack_scratch SEC(".maps");

u64 mp_seq = 0; /* the recording's one order; user space draws from it too */
u64 mp_losses[MP_LOSS_MAX] = {};
u32 mp_next_space = 0; /* ids from 1 */
const volatile u32 cfg_follow_forks = 0;

static __always_inline u64 next_seq(void)
{
	return __sync_fetch_and_add(&mp_seq, 1) + 1;
}

static __always_inline void count_loss(u32 cause, u32 cls, u32 space)
{
	struct mp_space_loss *loss;

	__sync_fetch_and_add(&mp_losses[cause], 1);
	loss = bpf_map_lookup_elem(&space_loss, &space);
	if (loss && cls < MP_CLASS_MAX)
		__sync_fetch_and_add(&loss->lost[cls], 1);
}

static __always_inline void fill_hdr(struct mp_hdr *hdr, u16 type, u16 size, u32 space)
{
	hdr->type = type;
	hdr->size = size;
	hdr->space = space;
	hdr->seq = next_seq();
	hdr->time_ns = bpf_ktime_get_ns();
}

#define MP_RECORD(name)                 \
	struct {                        \
		struct mp_hdr hdr;      \
		struct mp_ev_##name ev; \
	}

/* The reader looks by itself every few milliseconds; waking it for each record would cost more than
 * all the rest of a probe. Only a ring that fills up calls. */
static __always_inline u64 wake_if(void *ring, u64 above)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > above ? BPF_RB_FORCE_WAKEUP
								  : BPF_RB_NO_WAKEUP;
}

#define TOPO_WAKE   wake_if(&topo_ring, MP_TOPO_RING_BYTES / 4)
#define DETAIL_WAKE wake_if(&detail_ring, MP_DETAIL_RING_BYTES / 4)

static __always_inline void send_topo(void *rec, u32 size, u32 cls)
{
	struct mp_hdr *hdr = rec;

	if (bpf_ringbuf_output(&topo_ring, rec, size, TOPO_WAKE))
		count_loss(MP_LOSS_TOPO_RING, cls, hdr->space);
}

static __always_inline void send_detail(void *rec, u32 size)
{
	struct mp_hdr *hdr = rec;

	if (bpf_ringbuf_output(&detail_ring, rec, size, DETAIL_WAKE))
		count_loss(MP_LOSS_DETAIL_RING, MP_CLASS_PAGE, hdr->space);
}

/* Space of the current process, 0 when we do not follow it. */
static __always_inline u32 current_space(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	u32 *space = bpf_map_lookup_elem(&targets, &tgid);

	return space ? *space & ~MP_TARGET_JOINED : 0;
}

static __always_inline u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ull;
	return h ^ (h >> 29);
}

/* The user stack by frame pointers. A function without a frame that is interrupted in its own code
 * hides its caller from the chain; the word on top of the stack is kept as a raw copy so that the
 * reader can restore the caller where the unwind tables say it lies there.
 * Returns the id, 0 when unreadable. */
static __always_inline u64 user_stack(void *ctx, u32 space, int topology)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 hash = mix(0x6d656d70726f76ull, space), top = 0;
	struct stack_buf *buf;
	u32 zero = 0, n, i, size;
	u8 one = 1;
	long len;

	buf = bpf_map_lookup_elem(&stack_scratch, &zero);
	if (!buf)
		return 0;
	len = bpf_get_stack(ctx, buf->frames, MP_STACK_DEPTH * 8, BPF_F_USER_STACK);
	if (len < 8) {
		count_loss(MP_LOSS_STACK_FAIL, MP_CLASS_MAX, space);
		return 0;
	}
	n = (u32)len / 8;
	if (n > MP_STACK_DEPTH)
		n = MP_STACK_DEPTH;
	if (bpf_probe_read_user(&top, sizeof(top), (void *)regs->sp))
		top = 0;
	/* Data near the stack or no address at all cannot be a return address. */
	if (top < 0x10000 || top >> 47 || top - regs->sp + (8 << 20) < (16 << 20))
		top = 0;
	for (i = 0; i < MP_STACK_DEPTH; i++) {
		if (i >= n)
			break;
		hash = mix(hash, buf->frames[i]);
	}
	hash = mix(hash, top);
	if (!hash)
		hash = 1;
	if (bpf_map_lookup_elem(&known_stacks, &hash))
		return hash;

	if (n < MP_STACK_DEPTH + 1)
		buf->frames[n] = top;
	size = sizeof(buf->hdr) + sizeof(buf->ev) + (n + 1) * 8;
	if (size > sizeof(*buf))
		return 0;
	fill_hdr(&buf->hdr, MP_EV_STACK, size, space);
	buf->ev.id = hash;
	buf->ev.n = n;
	buf->ev.method = MP_UNWIND_FP;
	buf->ev.truncated = n == MP_STACK_DEPTH;
	buf->ev.raw = 8;
	if (topology ? bpf_ringbuf_output(&topo_ring, buf, size, TOPO_WAKE)
		     : bpf_ringbuf_output(&detail_ring, buf, size, DETAIL_WAKE)) {
		count_loss(topology ? MP_LOSS_TOPO_RING : MP_LOSS_DETAIL_RING, MP_CLASS_MAX, space);
		return 0;
	}
	if (bpf_map_update_elem(&known_stacks, &hash, &one, BPF_ANY))
		count_loss(MP_LOSS_STACK_MAP, MP_CLASS_MAX, space);
	return hash;
}

#endif
