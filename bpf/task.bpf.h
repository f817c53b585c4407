/* SPDX-License-Identifier: GPL-2.0-only
 * Address spaces: born by fork or exec, joined by vfork and CLONE_VM, left on exit. */
#ifndef MP_TASK_BPF_H
#define MP_TASK_BPF_H

#include "python.bpf.h"
#include "resource.bpf.h"
#include "unwind.bpf.h"

/* The parent is on the cpu. */
static __always_inline u64 fork_entry(void)
{
	struct thread *t = known_thread();

	return t ? t->fork_entry : 0;
}

static __always_inline void send_space(u32 space, u32 parent, struct task_struct *task, u32 cause)
{
	MP_RECORD(space) r = {};
	u64 comm[2] = {};

	bpf_probe_read_kernel(comm, sizeof(comm), &task->comm);
	fill_hdr(&r.hdr, MP_EV_SPACE, sizeof(r), space);
	r.ev.parent = parent;
	r.ev.tgid = task->tgid;
	r.ev.cause = cause;
	r.ev.comm0 = comm[0];
	r.ev.comm1 = comm[1];
	if (cause == MP_SPACE_FORK)
		r.ev.seq_entry = fork_entry();
	if (cause == MP_SPACE_EXEC)
		send_now(&r, sizeof(r), MP_CLASS_SPACE);
	else
		send_topo(&r, sizeof(r), MP_CLASS_SPACE);
}

/* What we know of a thread that has ended, or is another by exec: the kernel drops it itself where
 * it keeps it. */
static __always_inline void drop_thread(u32 tgid, u32 tid)
{
#ifdef MP_BASIC
	u64 id = (u64)tgid << 32 | tid;

	bpf_map_delete_elem(&threads, &id);
	bpf_map_delete_elem(&thread_names, &id);
#endif
}

/* The id of a new space, its entry made; 0: no room. */
static __always_inline u32 draw_space(void)
{
	struct mp_space_loss loss = {};
	u32 space;

#ifdef MP_BASIC
	/* Whoever makes the entry has the number; others that try at once take the next ones. */
	u32 first = *(volatile u32 *)&mp_next_space + 1, i;

	for (i = 0; i < 16; i++) {
		space = first + i;
		if (!bpf_map_update_elem(&space_loss, &space, &loss, BPF_NOEXIST)) {
			__sync_fetch_and_add(&mp_next_space, 1);
			return space;
		}
	}
	return 0;
#else
	space = __sync_fetch_and_add(&mp_next_space, 1) + 1;
	return bpf_map_update_elem(&space_loss, &space, &loss, BPF_NOEXIST) ? 0 : space;
#endif
}

static __always_inline u32 new_space(u32 tgid, u32 old)
{
	u32 space = draw_space();

	if (!space || follow(tgid, space)) {
		bpf_map_delete_elem(&space_loss, &space);
		/* Of an exec: what it was before is no more. */
		bpf_map_delete_elem(&targets, &tgid);
		count_loss(MP_LOSS_SPACE_MAP, MP_CLASS_SPACE, old);
		return 0;
	}
	return space;
}

SEC("tp_btf/sched_process_fork")
int HOOK(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 ptgid = parent->tgid, ctgid = child->tgid, space;
	u32 *pspace;

	if (ptgid == ctgid)
		return 0;
	pspace = bpf_map_lookup_elem(&targets, &ptgid);
	if (!pspace)
		return 0;
	/* vfork and CLONE_VM: whoever shares the space can map and unmap in it, so it is followed
	 * whether children are wanted or not. */
	if (child->mm == parent->mm) {
		space = *pspace & ~MP_TARGET_JOINED;
		if (follow(ctgid, *pspace | MP_TARGET_JOINED))
			count_loss(MP_LOSS_SPACE_MAP, MP_CLASS_SPACE, space);
		else
			send_space(space, 0, child, MP_SPACE_JOIN);
		return 0;
	}
	if (!cfg_follow_forks)
		return 0;
	space = new_space(ctgid, *pspace & ~MP_TARGET_JOINED);
	if (space) {
		share_ranges(*pspace & ~MP_TARGET_JOINED, space);
		share_python(*pspace & ~MP_TARGET_JOINED, space);
	}
	if (space)
		send_space(space, *pspace & ~MP_TARGET_JOINED, child, MP_SPACE_FORK);
	return 0;
}

static __always_inline void send_leave(u32 space, u32 tgid, u64 status)
{
	MP_RECORD(space_end) r = {};

	fill_hdr(&r.hdr, MP_EV_SPACE_END, sizeof(r), space);
	r.ev.tgid = tgid;
	r.ev.status = status;
	send_topo(&r, sizeof(r), MP_CLASS_SPACE);
}

SEC("tp_btf/sched_process_exec")
int HOOK(on_exec, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	u32 tgid = task->tgid, old, space;
	u32 *found = bpf_map_lookup_elem(&targets, &tgid);

	if (!found)
		return 0;
	old = *found & ~MP_TARGET_JOINED;
	drop_thread(tgid, old_pid);
	forget_space();
	send_leave(old, tgid, 0);
	if (*found & MP_TARGET_JOINED && !cfg_follow_forks) {
		bpf_map_delete_elem(&targets, &tgid);
		return 0;
	}
	space = new_space(tgid, old);
	if (space)
		send_space(space, 0, task, MP_SPACE_EXEC);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int HOOK(on_exit, struct task_struct *task)
{
	u32 tgid = task->tgid;
	u32 *space = bpf_map_lookup_elem(&targets, &tgid);

	drop_thread(tgid, task->pid);
	/* An exited leader leaves its threads, and the space, alive. */
	if (!space || task->signal->live.counter > 0)
		return 0;
	send_leave(*space & ~MP_TARGET_JOINED, tgid, 1 + (u64)(task->exit_code & 0xffff));
	bpf_map_delete_elem(&targets, &tgid);
	return 0;
}

#endif
