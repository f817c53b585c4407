/* SPDX-License-Identifier: GPL-2.0-only
 * Maps shared by all programs, and the one way to send a record: number it, ask for room, count the
 * loss by cause when there is none. Nothing here can fail without naming a row of loss.def. */
#ifndef MP_EMIT_BPF_H
#define MP_EMIT_BPF_H

#include "shared/event.h"
#include "shared/config.h"
#include "lose.bpf.h"
#include "build.bpf.h"

/* Topology has its own ring: a storm of faults must never cost a munmap. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MP_TOPO_RING_BYTES);
} topo_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MP_DETAIL_RING_BYTES);
} detail_ring SEC(".maps");

/* space id -> what was lost of it, by class. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct mp_space_loss);
} space_loss SEC(".maps");

u64 mp_seq = 0; /* the recording's one order; user space draws from it too */
u64 mp_losses[MP_LOSS_MAX] = {};
u32 mp_code_changes = 1; /* of all spaces: who knows this number need not ask for its own */
u32 mp_epoch = 0; /* user space counts it up to wait for the calls that entered before */
u32 mp_next_space = 0; /* ids from 1 */
const volatile u32 cfg_topo_wake = MP_TOPO_RING_BYTES / 4; /* bytes waiting that call the reader */
const volatile u32 cfg_detail_wake = MP_DETAIL_RING_BYTES / 4;

/* Causes draw smaller numbers than their effects, and no two events the same. */
static __always_inline u64 next_seq(void)
{
#ifdef MP_BASIC
	/* Two that add at once may read the same sum: the processor tells them apart, within a
	 * step. */
	__sync_fetch_and_add(&mp_seq, MP_SEQ_STEP);
	return *(volatile u64 *)&mp_seq - (bpf_get_smp_processor_id() & (MP_SEQ_STEP / 2 - 1)) - 1;
#else
	return __sync_fetch_and_add(&mp_seq, 1) + 1;
#endif
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

#define TOPO_WAKE   wake_if(&topo_ring, cfg_topo_wake)
#define DETAIL_WAKE wake_if(&detail_ring, cfg_detail_wake)

static __always_inline void send_with(void *rec, u32 size, u32 cls, u64 wake)
{
	struct mp_hdr *hdr = rec;

	if (lose(cfg_lose_topology, hdr->seq) || bpf_ringbuf_output(&topo_ring, rec, size, wake))
		count_loss(MP_LOSS_TOPO_RING, cls, hdr->space);
}

static __always_inline void send_topo(void *rec, u32 size, u32 cls)
{
	send_with(rec, size, cls, TOPO_WAKE);
}

/* Code is about to run that the unwinder does not know. */
static __always_inline void send_now(void *rec, u32 size, u32 cls)
{
	send_with(rec, size, cls, BPF_RB_FORCE_WAKEUP);
}

#endif
