/* SPDX-License-Identifier: GPL-2.0-only
 * May a thread be preempted in a program on a tracepoint? The kernel's own count says so. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define NO_RESCHED 0x80000000u /* the count's inverted bit: nobody wants the cpu */

extern const int __preempt_count __ksym;

const volatile u32 cfg_tgid = 0;
u32 mp_asked = 0, mp_preemptible = 0;

SEC("tp_btf/sys_enter")
int BPF_PROG(ask, struct pt_regs *regs, long id)
{
	const int *count = bpf_this_cpu_ptr(&__preempt_count);

	if (bpf_get_current_pid_tgid() >> 32 != cfg_tgid)
		return 0;
	mp_preemptible = !(*count & ~NO_RESCHED);
	mp_asked = 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
