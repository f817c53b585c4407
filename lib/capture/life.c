/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/config.h"
#include "lib/capture/life.h"
#include "memprov.skel.h"

#define MAX_TRACEPOINTS 2

/* program: loaded with the row; tracepoint: without it there is no row. */
static const struct {
	const char *capability, *provider, *stability;
	struct {
		const char *program, *tracepoint;
	} needs[MAX_TRACEPOINTS];
} rows[LIFE_HOOKS] = {
	[LIFE_RECLAIM] = {"reclaim",
			  "mm_vmscan_write_folio",
			  "tracepoint",
			  {{"on_write_folio", "mm_vmscan_write_folio"}}},
	[LIFE_SWAP_IN] = {"swap-in", "rss_stat in a fault", "tracepoint", {{NULL, NULL}}},
	[LIFE_MIGRATE] = {"migrate",
			  "remove_migration_pte",
			  "tracepoint",
			  {{"on_moved", "remove_migration_pte"}}},
	[LIFE_COLLAPSE] = {"collapse",
			   "mm_collapse_huge_page",
			   "tracepoint",
			   {{"on_isolated", "mm_collapse_huge_page_isolate"},
			    {"on_collapsed", "mm_collapse_huge_page"}}},
	[LIFE_MAJOR] = {"major-fault", "perf software event", "UAPI", {{"on_major_fault", NULL}}},
	[LIFE_STALL] = {"direct-reclaim",
			"direct_reclaim and memcg_reclaim",
			"tracepoint",
			{{NULL, NULL}}},
};

struct life {
	const char *why[LIFE_HOOKS]; /* NULL: it is there */
	struct bpf_link **major; /* one a processor */
	int nr_major;
	struct bpf_link *memcg; /* the end of a cgroup's reclaim */
};

static int has_tracepoint(const struct btf *btf, const char *name)
{
	char type[96];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) >= 0;
}

/* Also in the anonymous structures that it is made of. */
static int has_member(const struct btf *btf, int id, const char *want)
{
	const struct btf_type *t = id < 0 ? NULL : btf__type_by_id(btf, (u32)id);
	int i, found = 0;

	for (i = 0; t && btf_is_composite(t) && i < btf_vlen(t) && !found; i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *name = btf__name_by_offset(btf, m->name_off);

		found = name && *name ? !strcmp(name, want) : has_member(btf, (int)m->type, want);
	}
	return found;
}

/* mm_struct.owner says whose an address space is. */
static int has_owner(const struct btf *btf)
{
	return has_member(btf, btf__find_by_name_kind(btf, "mm_struct", BTF_KIND_STRUCT), "owner");
}

static const char *why_not(const struct btf *btf, enum life_hook i)
{
	int k;

	if (!btf)
		return "the kernel has no BTF";
	for (k = 0; k < MAX_TRACEPOINTS; k++)
		if (rows[i].needs[k].tracepoint &&
		    !has_tracepoint(btf, rows[i].needs[k].tracepoint))
			return "the kernel has no such tracepoint";
	if ((i == LIFE_RECLAIM || i == LIFE_MIGRATE || i == LIFE_COLLAPSE) && !has_owner(btf))
		return "the kernel has no memory cgroups, and so does not say whose a page is";
	return NULL;
}

static void leave_out(struct memprov_bpf *skel, enum life_hook i)
{
	int k;

	for (k = 0; k < MAX_TRACEPOINTS; k++)
		if (rows[i].needs[k].program)
			bpf_program__set_autoload(bpf_object__find_program_by_name(
							  skel->obj, rows[i].needs[k].program),
						  false);
}

int life_choose(struct memprov_bpf *skel, enum life_choice choice, struct life **ret_l)
{
	struct life *l = calloc(1, sizeof(*l));
	struct btf *btf;
	int i;

	if (!l)
		return -ENOMEM;
	*ret_l = l;
	if (choice == LIFE_ALL)
		return 0;
	btf = btf__load_vmlinux_btf();
	for (i = 0; i < LIFE_HOOKS; i++) {
		if (!rows[i].needs[0].program)
			continue;
		l->why[i] = choice == LIFE_NONE ? "the kernel refused its program"
						: why_not(btf, (enum life_hook)i);
		if (l->why[i])
			leave_out(skel, (enum life_hook)i);
	}
	btf__free(btf);
	return 0;
}

/* On one processor, for every process of the machine: the program turns the others away. */
static struct bpf_link *attach_major(const struct bpf_program *prog, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link;

	if (fd < 0)
		return NULL;
	link = bpf_program__attach_perf_event(prog, fd);
	if (libbpf_get_error(link)) {
		close(fd);
		return NULL;
	}
	return link;
}

int life_attach(struct life *l, struct memprov_bpf *skel)
{
	int cpu, cpus = libbpf_num_possible_cpus();

	l->memcg = bpf_program__attach_raw_tracepoint(skel->progs.on_reclaim_end,
						      "mm_vmscan_memcg_reclaim_end");
	if (!l->memcg)
		return -errno;
	if (l->why[LIFE_MAJOR])
		return 0;
	l->major = cpus > 0 ? calloc((size_t)cpus, sizeof(struct bpf_link *)) : NULL;
	for (cpu = 0; l->major && cpu < cpus; cpu++) {
		l->major[l->nr_major] = attach_major(skel->progs.on_major_fault, cpu);
		l->nr_major += l->major[l->nr_major] != NULL;
	}
	if (!l->nr_major)
		l->why[LIFE_MAJOR] = "the kernel refused perf events";
	else if (l->nr_major < sysconf(_SC_NPROCESSORS_ONLN))
		l->why[LIFE_MAJOR] = "the kernel refused perf events on some processors";
	return 0;
}

void life_detach(struct life *l)
{
	if (!l)
		return;
	while (l->nr_major)
		bpf_link__destroy(l->major[--l->nr_major]);
	bpf_link__destroy(l->memcg);
	l->memcg = NULL;
}

const char *life_hook(const struct life *l, enum life_hook i, const char **ret_capability,
		      const char **ret_provider, const char **ret_stability)
{
	*ret_capability = rows[i].capability;
	*ret_provider = rows[i].provider;
	*ret_stability = rows[i].stability;
	return l ? l->why[i] : "no BPF programs are loaded";
}

void life_drop(struct life *l, enum life_hook i, const char *why)
{
	if (l && !l->why[i])
		l->why[i] = why;
}

void life_no_swap_in(struct life *l)
{
	life_drop(l, LIFE_SWAP_IN, "this kernel counts swap entries in batches, not in the fault");
}

void life_free(struct life **l)
{
	if (!l || !*l)
		return;
	life_detach(*l);
	free((*l)->major);
	free(*l);
	*l = NULL;
}
