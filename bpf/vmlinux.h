/* SPDX-License-Identifier: GPL-2.0-only
 * Just the kernel fields memprov reads, written by hand; CO-RE finds their real offsets. */
#ifndef MP_VMLINUX_H
#define MP_VMLINUX_H

#include <linux/bpf.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef int pid_t;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct xol_area {
	unsigned long vaddr; /* of the uretprobe trampoline */
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct uprobes_state uprobes_state;
	unsigned long brk;
	struct task_struct *owner; /* with CONFIG_MEMCG */
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct thread_info {
	u32 status;
};

struct thread_struct {
	unsigned long fsbase;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct task_struct {
	struct thread_info thread_info;
	pid_t pid;
	pid_t tgid;
	struct mm_struct *mm;
	struct signal_struct *signal;
	int exit_code;
	struct uprobe_task *utask;
	struct thread_struct thread;
	char comm[16];
};

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long sp;
	unsigned long ip;
	unsigned long cs;
	unsigned long orig_ax;
};

struct rb_node {
	struct rb_node *rb_left, *rb_right;
};

struct anon_vma {
	struct {
		struct {
			struct rb_node *rb_node;
		} rb_root;
	} rb_root;
};

struct linux_binprm {
	int have_execfd;
};

struct page {
	unsigned long flags;
};

struct trace_event_raw_sys_enter {
	long id;
};

struct trace_event_raw_sys_exit {
	long id;
	long ret;
};

struct trace_event_raw_mm_page_alloc {
	unsigned long pfn;
	unsigned int order;
	unsigned long gfp_flags;
};

#pragma clang attribute pop

#endif
