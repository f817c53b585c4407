/* SPDX-License-Identifier: GPL-2.0-only
 * The kernel chooses a process to kill. It is not killed yet: whose limit it is about is known best
 * now, since a process that exits has left its cgroup. */
#ifndef MP_OOM_BPF_H
#define MP_OOM_BPF_H

#include "follow.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
};

struct task_struct___oom {
	struct css_set *cgroups;
};

#pragma clang attribute pop

enum cgroup_subsys_id___oom { memory_cgrp_id = 0 };

/* Inode of the folder of its memory cgroup. */
static __always_inline u64 memcg_of(struct task_struct *task)
{
	struct task_struct___oom *t = (void *)task;
	struct cgroup_subsys_state *css = NULL;
	struct css_set *set;
	u32 i;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id___oom, memory_cgrp_id) ||
	    !bpf_core_field_exists(t->cgroups))
		return 0;
	i = bpf_core_enum_value(enum cgroup_subsys_id___oom, memory_cgrp_id);
	set = BPF_CORE_READ(t, cgroups);
	bpf_probe_read_kernel(&css, sizeof(css),
			      (void *)set + bpf_core_field_offset(struct css_set, subsys) +
				      i * sizeof(css));
	return BPF_CORE_READ(css, cgroup, kn, id);
}

/* Its argument is the task, and was its number before Linux 6.10. */
SEC("raw_tp/mark_victim")
int on_victim(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	int is_task = args[0] >> 32 != 0;
	u32 tgid = is_task ? BPF_CORE_READ(task, tgid) : (u32)args[0], *space;
	MP_RECORD(oom) r = {};

	space = maybe_followed(tgid) ? bpf_map_lookup_elem(&targets, &tgid) : NULL;
	if (!space)
		return 0;
	fill_hdr(&r.hdr, MP_EV_OOM, sizeof(r), *space & ~MP_TARGET_JOINED);
	r.ev.tgid = tgid;
	r.ev.memcg = is_task ? memcg_of(task) : 0;
	send_now(&r, sizeof(r), MP_CLASS_SPACE);
	return 0;
}

#endif
