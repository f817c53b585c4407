/* SPDX-License-Identifier: GPL-2.0-only
 * Whom we follow, and what is known of each of their threads. The hooks run for every process of
 * the machine: the test that turns the others away is one bit, without a call. */
#ifndef MP_FOLLOW_BPF_H
#define MP_FOLLOW_BPF_H

#include "emit.bpf.h"

/* tgid -> space id (and MP_TARGET_JOINED). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_TARGETS);
	__type(key, u32);
	__type(value, u32);
} targets SEC(".maps");

/* A bit for each tgid in targets, and for all that share its low bits. Bits are only ever set: one
 * of a process that has gone costs its successors a look into targets and no more. */
u64 mp_filter[MP_FILTER_WORDS] = {};
const volatile u32 cfg_follow_forks = 0;

struct open_fault {
	u64 addr, ip, sp, time_ns;
	u64 reclaim_ns; /* when the reclaim it is in began */
	u16 error_code;
	u8 open, order;
	u16 candidates;
	u8 reclaim;
	u8 done; /* its record is sent, and the fault may still go on */
#ifdef MP_BASIC
	u64 regs; /* where the thread's registers are */
#endif
};

/* A mapping call between its entry and its return. */
struct open_call {
	u64 args[5];
	u64 seq_entry;
	u64 old_brk;
	u32 nr; /* 0 none */
	u32 epoch;
};

/* The outermost call of an allocator that a thread is in. */
struct alloc_call {
	u64 sp; /* at its entry, 0: it is in none */
	u64 old_addr, bytes;
	u64 out; /* where the result goes, 0: it is returned */
	u64 seq_entry, stack;
	u64 family;
};

struct thread {
	u32 space; /* what targets says, 0 not asked; exec is the one thing that changes it */
	u32 code, code_seen; /* of its space; as of this many changes */
	u32 sent;
	u64 extent; /* bytes of stack its last walk needed, 0 not known */
	u64 known[MP_KNOWN_STACKS]; /* ids of stacks that are in the ring already */
	struct open_fault fault;
	struct open_call call;
	u64 fork_entry; /* sequence at the entry of its latest fork */
	struct alloc_call alloc;
	u64 python, python_again, python_pause; /* its PyThreadState, 0: when to look again */
};

#ifdef MP_BASIC
/* By pid and tgid. Who ends, or becomes another by exec, is taken out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_THREADS);
	__type(key, u64);
	__type(value, struct thread);
} threads SEC(".maps");

/* Only ever zero: what a new entry is made of. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct thread);
} no_thread_scratch SEC(".maps");

static __always_inline int maybe_followed(u32 tgid)
{
	return 1;
}

static __always_inline int follow(u32 tgid, u32 target)
{
	return bpf_map_update_elem(&targets, &tgid, &target, BPF_ANY);
}

static __always_inline struct thread *stored_thread(void)
{
	u64 id = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&threads, &id);
}

static __always_inline struct thread *store_thread(void)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 zero = 0;
	struct thread *none = bpf_map_lookup_elem(&no_thread_scratch, &zero);

	if (none)
		bpf_map_update_elem(&threads, &id, none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &id);
}

#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline int maybe_followed(u32 tgid)
{
	return mp_filter[tgid / 64 % MP_FILTER_WORDS] >> (tgid % 64) & 1;
}

static __always_inline int follow(u32 tgid, u32 target)
{
	/* The bit first: who is in targets must never be turned away. */
	__sync_fetch_and_or(&mp_filter[tgid / 64 % MP_FILTER_WORDS], 1ull << (tgid % 64));
	return bpf_map_update_elem(&targets, &tgid, &target, BPF_ANY);
}

static __always_inline struct thread *stored_thread(void)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
}

static __always_inline struct thread *store_thread(void)
{
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#endif

/* Space of the current process, 0 when we do not follow it. */
static __always_inline u32 current_space(void)
{
	u32 tgid = current_tgid(), *space;

	if (!maybe_followed(tgid))
		return 0;
	space = bpf_map_lookup_elem(&targets, &tgid);
	return space ? *space & ~MP_TARGET_JOINED : 0;
}

/* The current thread as a hook knew it before, or NULL. */
static __always_inline struct thread *known_thread(void)
{
	return maybe_followed(current_tgid()) ? stored_thread() : NULL;
}

/* The current thread, its space filled in, or NULL when we do not follow it. A thread that cannot
 * be remembered is a loss of class cls. */
static __always_inline struct thread *current_thread(u32 cls)
{
	struct thread *t = known_thread();
	u32 space;

	if (t && t->space)
		return t;
	space = current_space();
	if (!space)
		return NULL;
	if (!t)
		t = store_thread();
	if (t)
		t->space = space;
	else
		count_loss(MP_LOSS_INFLIGHT, cls, space);
	return t;
}

/* The current thread runs another program from now on. */
static __always_inline void forget_space(void)
{
	struct thread *t = stored_thread();

	if (t)
		t->space = t->code_seen = 0;
}

#endif
