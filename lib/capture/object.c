/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/config.h"
#include "lib/capture/life.h"
#include "lib/capture/lose.h"
#include "lib/capture/object.h"
#include "lib/capture/session.h"
#include "basic.skel.h"
#include "memprov.skel.h"
#include "preempt.skel.h"
#include "preemptible.skel.h"

/* 1 only where the kernel says so: its count has been a variable of its own since Linux 6.15, and
 * no tracepoint before 7.0 lets a thread be preempted. */
static int is_preemptible(void)
{
	struct preempt_bpf *obj = preempt_bpf__open();
	int yes = 0;

	if (!obj)
		return 0;
	obj->rodata->cfg_tgid = (u32)getpid();
	if (!preempt_bpf__load(obj) && !preempt_bpf__attach(obj)) {
		syscall(SYS_getppid);
		yes = obj->bss->mp_asked && obj->bss->mp_preemptible;
	}
	preempt_bpf__destroy(obj);
	return yes;
}

static int is_any(void)
{
	return 1;
}

/* THE table of builds of memprov.bpf.c, best first: of those that are fit the first that loads.
 * They have the same programs, maps and variables, so that one skeleton serves all. */
static const struct build {
	const char *name;
	const void *(*elf)(size_t *size);
	int (*is_fit)(void);
	int is_all; /* where this one does not load none would do */
	int is_basic; /* without the hooks of a page's life */
} builds[] = {
	{"preemptible", preemptible_bpf__elf_bytes, is_preemptible, 1, 0},
	{"plain", memprov_bpf__elf_bytes, is_any, 0, 0},
	/* Linux 5.10; and any whose verifier gives up on the plain one. */
	{"basic", basic_bpf__elf_bytes, is_any, 0, 1},
};

_Static_assert(sizeof(struct preemptible_bpf__bss) == sizeof(struct memprov_bpf__bss) &&
		       sizeof(struct preemptible_bpf__rodata) == sizeof(struct memprov_bpf__rodata),
	       "the builds have the same variables");
_Static_assert(sizeof(struct basic_bpf__bss) == sizeof(struct memprov_bpf__bss) &&
		       sizeof(struct basic_bpf__rodata) == sizeof(struct memprov_bpf__rodata),
	       "the builds have the same variables");

static struct memprov_bpf *open_build(const struct build *b)
{
	struct memprov_bpf *obj = calloc(1, sizeof(*obj));
	int err;

	if (!obj)
		return NULL;
	err = memprov_bpf__create_skeleton(obj);
	if (!err) {
		obj->skeleton->data = (void *)b->elf(&obj->skeleton->data_sz);
		err = bpf_object__open_skeleton(obj->skeleton, NULL);
	}
	if (!err)
		return obj;
	memprov_bpf__destroy(obj);
	errno = -err;
	return NULL;
}

struct memprov_bpf *object_idle(void)
{
	return memprov_bpf__open();
}

/* The size the kernel asks for: a power of two of whole pages. */
static u32 ring_size(u64 bytes)
{
	u64 size = SESSION_RING_MIN;

	while (size < bytes && size < 1u << 30)
		size *= 2;
	return (u32)size;
}

/* Topology has its own ring, a quarter of the other by default too: a mapping call is rarer. */
static int set_rings(struct memprov_bpf *obj, u64 bytes)
{
	u32 detail = ring_size(bytes), topo = ring_size(bytes / 4);
	int err;

	if (!bytes)
		return 0;
	obj->rodata->cfg_detail_wake = detail / 4;
	obj->rodata->cfg_topo_wake = topo / 4;
	err = bpf_map__set_max_entries(obj->maps.detail_ring, detail);
	return err ? err : bpf_map__set_max_entries(obj->maps.topo_ring, topo);
}

static int load_build(const struct build *b, enum life_choice hooks, const struct object_opts *o,
		      const struct lose *lose, struct memprov_bpf **ret_obj, struct life **ret_life)
{
	struct memprov_bpf *obj = open_build(b);
	struct life *life = NULL;
	int err;

	if (!obj)
		return -errno;
	obj->rodata->cfg_follow_forks = (u32)o->follow;
	obj->rodata->cfg_lose_topology = lose->topology;
	obj->rodata->cfg_lose_detail = lose->detail;
	obj->rodata->cfg_lose_burst = lose->burst;
	obj->rodata->cfg_lose_seed = lose->seed;
	err = set_rings(obj, o->ring_bytes);
	if (!err)
		err = life_choose(obj, hooks, &life);
	if (!err && b->is_basic)
		err = bpf_map__set_autocreate(obj->maps.reclaimers, false);
	if (!err)
		err = memprov_bpf__load(obj);
	if (!err)
		err = memprov_bpf__attach(obj);
	if (!err)
		err = life_attach(life, obj);
	if (!err) {
		*ret_obj = obj;
		*ret_life = life;
		return 0;
	}
	life_free(&life);
	memprov_bpf__destroy(obj);
	return err;
}

/* For tests: MEMPROV_BUILD names one that is to be taken wherever it loads. */
static int is_wanted(const struct build *b, const char *name)
{
	return name ? !strcmp(b->name, name) : b->is_fit();
}

int object_load(const struct object_opts *o, char *msg, size_t msg_len,
		struct memprov_bpf **ret_obj, struct life **ret_life)
{
	const char *name = getenv("MEMPROV_BUILD");
	enum life_choice hooks;
	int err = -ENOENT, last = 0;
	struct lose lose;
	size_t i;

	if (lose_parse(getenv("MEMPROV_LOSE"), &lose)) {
		snprintf(msg, msg_len,
			 "MEMPROV_LOSE: not a list such as topology=1%%,detail=0.1%%");
		return -EINVAL;
	}
	for (i = 0; err && !last && i < sizeof(builds) / sizeof(builds[0]); i++) {
		if (!is_wanted(&builds[i], name))
			continue;
		hooks = builds[i].is_basic ? LIFE_NONE : LIFE_ALL;
		for (; err && hooks <= LIFE_NONE; hooks++)
			err = load_build(&builds[i], hooks, o, &lose, ret_obj, ret_life);
		last = builds[i].is_all;
	}
	return err;
}
