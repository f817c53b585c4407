/* SPDX-License-Identifier: GPL-2.0-only
 * What an application says of its memory by the probes of memprov-usdt.h: which range is which
 * resource, and that one is used. Uses are counted here, and read once: there may be millions. */
#ifndef MP_RESOURCE_BPF_H
#define MP_RESOURCE_BPF_H

#include "follow.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MP_MAX_RESOURCES);
	__type(key, struct mp_resource_key);
	__type(value, struct mp_resource_use);
} resource_uses SEC(".maps");

struct resource_buf {
	struct mp_hdr hdr;
	struct mp_ev_resource ev;
	struct mp_resource_text text;
};

_Static_assert(sizeof(struct mp_ev_resource) == sizeof(struct mp_ev_resource_end),
	       "one buffer serves both");

static __always_inline void lose_resource(u32 space)
{
	count_loss(MP_LOSS_RESOURCE, MP_CLASS_MAX, space);
}

/* A part of a name would be another resource's. */
static __always_inline int read_name(char *to, const void *from)
{
	long len = bpf_probe_read_user_str(to, MP_RESOURCE_NAME, from);

	return len > 1 && len < MP_RESOURCE_NAME;
}

/* name: text that is read already, or NULL: it is the process's, at at. */
static __always_inline void send_resource(u16 type, u32 space, const struct mp_resource_text *name,
					  const void *at, u64 start, u64 len)
{
	struct resource_buf *r = bpf_ringbuf_reserve(&topo_ring, sizeof(*r), 0);
	int readable = 1;

	if (!r) {
		next_seq();
		lose_resource(space);
		return;
	}
	__builtin_memset(r, 0, sizeof(*r));
	r->ev.start = start;
	r->ev.end = start + len;
	r->ev.tid = bpf_get_current_pid_tgid();
	fill_hdr(&r->hdr, type, sizeof(*r), space);
	if (name)
		r->text = *name;
	else
		readable = read_name(r->text.name, at);
	if (readable && !lose(cfg_lose_topology, r->hdr.seq)) {
		bpf_ringbuf_submit(r, TOPO_WAKE);
		return;
	}
	lose_resource(space);
	bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
}

/* (name, addr, len) */
static __always_inline int name_range(struct pt_regs *ctx, u16 type)
{
	struct thread *t = current_thread(MP_CLASS_MAX);

	if (t && ctx->dx && ctx->si + ctx->dx > ctx->si)
		send_resource(type, t->space, NULL, (void *)ctx->di, ctx->si, ctx->dx);
	return 0;
}

/* What the thread maps from now on is this resource's. */
#ifdef MP_BASIC
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MP_MAX_THREADS);
	__type(key, u64);
	__type(value, struct mp_resource_text);
} thread_names SEC(".maps");

static __always_inline struct mp_resource_text *stored_name(void)
{
	u64 id = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&thread_names, &id);
}

static __always_inline int store_name(const struct mp_resource_text *text)
{
	u64 id = bpf_get_current_pid_tgid();

	return bpf_map_update_elem(&thread_names, &id, text, BPF_ANY);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mp_resource_text);
} thread_names SEC(".maps");

static __always_inline struct mp_resource_text *stored_name(void)
{
	return bpf_task_storage_get(&thread_names, bpf_get_current_task_btf(), NULL, 0);
}

static __always_inline int store_name(const struct mp_resource_text *text)
{
	struct mp_resource_text *of = bpf_task_storage_get(
		&thread_names, bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (of)
		*of = *text;
	return !of;
}
#endif

static __always_inline void name_mapping(u32 space, u64 start, u64 len)
{
	struct mp_resource_text *of = stored_name();

	if (of && of->name[0])
		send_resource(MP_EV_RESOURCE, space, of, NULL, start, len);
}

SEC("uprobe")
int on_resource_begin(struct pt_regs *ctx)
{
	return name_range(ctx, MP_EV_RESOURCE);
}

SEC("uprobe")
int on_resource_end(struct pt_regs *ctx)
{
	return name_range(ctx, MP_EV_RESOURCE_END);
}

/* (name) */
SEC("uprobe")
int on_resource_use(struct pt_regs *ctx)
{
	struct thread *t = current_thread(MP_CLASS_MAX);
	struct mp_resource_use now = {.last_ns = bpf_ktime_get_ns(), .uses = 1}, *was;
	struct mp_resource_key key = {};

	if (!t)
		return 0;
	key.space = t->space;
	if (!read_name(key.name, (void *)ctx->di)) {
		lose_resource(t->space);
		return 0;
	}
	was = bpf_map_lookup_elem(&resource_uses, &key);
	/* Another thread may be the first in between. */
	if (!was && !bpf_map_update_elem(&resource_uses, &key, &now, BPF_NOEXIST))
		return 0;
	if (!was)
		was = bpf_map_lookup_elem(&resource_uses, &key);
	if (!was) {
		lose_resource(t->space);
		return 0;
	}
	was->last_ns = now.last_ns;
	__sync_fetch_and_add(&was->uses, 1);
	return 0;
}

/* (name); NULL or empty: the thread has none any more. */
SEC("uprobe")
int on_resource_thread(struct pt_regs *ctx)
{
	struct thread *t = current_thread(MP_CLASS_MAX);
	struct mp_resource_text text = {};
	char first = 0;

	if (!t)
		return 0;
	if (ctx->di)
		bpf_probe_read_user(&first, 1, (void *)ctx->di);
	if (first && !read_name(text.name, (void *)ctx->di))
		lose_resource(t->space);
	if (store_name(&text) && first)
		lose_resource(t->space);
	return 0;
}

#endif
