/* SPDX-License-Identifier: GPL-2.0-only
 * memprov.bpf.c is built three times; lib/capture/object.c says which is for which kernel. What
 * differs between the builds is here or asks for one of:
 *
 * MP_PREEMPTIBLE  Tracepoints used to run with preemption off. Since Linux 7.0 another thread may
 *                 get the cpu in the middle of a program: it would find the scratch space of this
 *                 one half written, and the kernel skips all its calls of the same program until
 *                 this one is over. So preemption is off inside, and programs that run where a
 *                 thread may be preempted (system calls, allocations) are of the old kind, which
 *                 perf calls with preemption off.
 * MP_BASIC        Linux 5.10 has no storage in tasks, no typed pointer to the current one, no
 *                 atomic addition that returns, and no function that is verified by itself: threads
 *                 are in a hash, and stacks are the kernel's own, by frame pointers. */
#ifndef MP_BUILD_BPF_H
#define MP_BUILD_BPF_H

#include "shared/types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

/* HOOK(name, args...): a program on a tracepoint, as BPF_PROG, which none of ours interrupts. */
#ifdef MP_PREEMPTIBLE
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;

/* clang-format off */
#define HOOK(name, args...)                                                             \
	name(unsigned long long *ctx);                                                  \
	static __always_inline int name##_inside(unsigned long long *ctx, ##args);      \
	int name(unsigned long long *ctx)                                               \
	{                                                                               \
		bpf_preempt_disable();                                                  \
		_Pragma("GCC diagnostic push")                                          \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")                  \
		name##_inside(___bpf_ctx_cast(args));                                   \
		_Pragma("GCC diagnostic pop")                                           \
		bpf_preempt_enable();                                                   \
		return 0;                                                               \
	}                                                                               \
	static __always_inline int name##_inside(unsigned long long *ctx, ##args)
/* clang-format on */
#else
#define HOOK BPF_PROG
#endif

/* In programs that are no HOOK. */
static __always_inline void hold_cpu(void)
{
#ifdef MP_PREEMPTIBLE
	bpf_preempt_disable();
#endif
}

static __always_inline void release_cpu(void)
{
#ifdef MP_PREEMPTIBLE
	bpf_preempt_enable();
#endif
}

/* A field of the current task. */
#ifdef MP_BASIC
#define CURRENT(field) BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), field)
#else
#define CURRENT(field) (bpf_get_current_task_btf()->field)
#endif

static __always_inline u32 current_tgid(void)
{
#ifdef MP_BASIC
	return bpf_get_current_pid_tgid() >> 32;
#else
	return bpf_get_current_task_btf()->tgid;
#endif
}

#endif
