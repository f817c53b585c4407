/* SPDX-License-Identifier: GPL-2.0-only
 * What proves that no processor keeps a translation from before accessed bits were cleared: the
 * generation of an address space's translations, which every flush raises, and, of the recorder's
 * own space, the flush itself. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct___flush {
	struct {
		struct {
			s64 counter;
		} tlb_gen; /* x86, Linux 4.15 */
	} context;
};

struct vm_area_struct {
	struct mm_struct___flush *vm_mm;
};

struct bpf_iter__task_vma {
	struct vm_area_struct *vma;
};

#pragma clang attribute pop

u64 flush_generation = 0; /* 0: unknown */
u32 flush_tid = 0; /* who is watched */
u64 flush_whole = 0; /* flushes of all of a space on that thread */

SEC("iter/task_vma")
int read_generation(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;

	if (!vma)
		return 0;
	if (bpf_core_field_exists(struct mm_struct___flush, context.tlb_gen))
		flush_generation = (u64)BPF_CORE_READ(vma, vm_mm, context.tlb_gen.counter);
	return 1; /* ends it: read() says EAGAIN */
}

SEC("tp_btf/tlb_flush")
int BPF_PROG(on_flush, int reason, unsigned long pages)
{
	/* On a task switch (0) it is this thread's own doing by chance. */
	if ((u32)bpf_get_current_pid_tgid() == flush_tid && reason && pages == ~0ul)
		flush_whole++;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
