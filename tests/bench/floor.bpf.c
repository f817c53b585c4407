/* SPDX-License-Identifier: GPL-2.0-only
 * Empty programs at the three tracepoints that a fault passes and the two of a system call: below
 * their cost no collector that uses these comes, whatever it does. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

SEC("tp_btf/page_fault_user")
int BPF_PROG(empty_fault)
{
	return 0;
}

SEC("tp_btf/mm_page_alloc")
int BPF_PROG(empty_alloc)
{
	return 0;
}

SEC("tp_btf/rss_stat")
int BPF_PROG(empty_rss)
{
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(empty_enter)
{
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(empty_exit)
{
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
