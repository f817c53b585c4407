/* SPDX-License-Identifier: GPL-2.0-only
 * What a cgroup's records become: rows, their grade, and a check that cannot close by itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/join/join.h"
#include "lib/join/memcg.h"

#define CPUS	 2
#define GROUPS	 3
#define ADVANCE	 (64ull * MP_PAGE_SIZE * CPUS * GROUPS) /* charged in advance */
#define STAT_LAG (128ull * MP_PAGE_SIZE * CPUS) /* v2: memory.stat is that much behind */
#define MAPPED	 11 /* pages of the process charged here, of 13 */

static char path[] = "/tmp/memprov-memcg.XXXXXX";
static struct trace_writer *w;
static int failed;

static void report(const char *name, int ok)
{
	printf("%s %s\n", ok ? "ok" : "FAIL", name);
	failed |= !ok;
}

static void put(u16 type, u64 seq, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[64];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .space = type == MP_EV_CGROUP || type == MP_EV_CGROUP_STAT ||
						  type == MP_EV_SESSION
					  ? 0
					  : 1,
			 .seq = seq,
			 .time_ns = seq * 1000}};

	memcpy(rec.body, body, len);
	if (trace_write(w, &rec.hdr))
		failed = 1;
}

static void put_group(u32 version, u32 flags, u32 when, u64 seq)
{
	struct mp_ev_cgroup ev = {
		.path = (u32)trace_string(w, "/g"),
		.version = version,
		.groups = GROUPS,
		.flags = flags,
		.when = when,
	};

	put(MP_EV_CGROUP, seq, &ev, sizeof(ev));
}

static void put_stat(const char *source, const char *name, u64 value, u32 when, u64 seq)
{
	struct mp_ev_cgroup_stat ev = {
		.value = value,
		.source = (u32)trace_string(w, source),
		.name = (u32)trace_string(w, name),
		.unit = MP_UNIT_BYTES,
		.when = when,
	};

	put(MP_EV_CGROUP_STAT, seq, &ev, sizeof(ev));
}

/* One process with 13 pages, MAPPED of them charged to the group. */
static void put_process(u32 stable)
{
	struct mp_ev_session session = {.page_size = MP_PAGE_SIZE, .nr_cpus = CPUS};
	struct mp_ev_space space = {.tgid = 7, .cause = MP_SPACE_ATTACH};
	struct mp_ev_walk walk = {.id = 1};
	struct mp_ev_vma vma = {.start = 0x10000000,
				.end = 0x10000000 + 13 * MP_PAGE_SIZE,
				.flags = MP_VMA_READ | MP_VMA_WRITE,
				.walk = 1};
	struct mp_ev_run run = {.start = 0x10000000, .mapcount = 1, .node = ~0u};

	put(MP_EV_SESSION, 1, &session, sizeof(session));
	put(MP_EV_SPACE, 1, &space, sizeof(space));
	put(MP_EV_WALK, 2, &walk, sizeof(walk));
	put(MP_EV_VMA, 2, &vma, sizeof(vma));
	run.pages = MAPPED;
	run.flags = MP_PAGE_RESIDENT | MP_PAGE_CHARGED;
	put(MP_EV_RUN, 2, &run, sizeof(run));
	run.start += MAPPED * MP_PAGE_SIZE;
	run.pages = 13 - MAPPED;
	run.flags = MP_PAGE_RESIDENT;
	put(MP_EV_RUN, 2, &run, sizeof(run));
	walk.end = 1;
	walk.stable = stable;
	put(MP_EV_WALK, 2, &walk, sizeof(walk));
}

static void begin(void)
{
	if (trace_writer_open(path, 0, &w) || trace_writer_publish(w))
		exit(1);
}

static struct report *join(void)
{
	struct mp_ev_end end = {0};
	struct report *r = NULL;

	put(MP_EV_END, 9, &end, sizeof(end));
	trace_writer_close(&w);
	join_file(path, OWNER_AUTO, &r);
	return r;
}

static const struct cost *charged(const struct report *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].kind == ORIGIN_MEMCG && !strcmp(r->rows[i].name, name))
			return &r->rows[i].cost[COST_CHARGED];
	return NULL;
}

static int is(const struct cost *c, u64 exact, u64 inferred)
{
	return c && c->known && c->exact == (s64)exact && c->inferred == (s64)inferred;
}

/* A v2 group with all figures; current is what the parts make up, and off. */
static struct report *v2(u32 flags, u32 stable, s64 off)
{
	static const struct {
		const char *name;
		u64 value;
	} stat[] = {{"file", 700000},
		    {"file_mapped", 100000},
		    {"kernel", 90000},
		    {"slab_reclaimable", 10000},
		    {"slab_unreclaimable", 20000},
		    {"pagetables", 30000},
		    {"percpu", 5000},
		    {"sock", 7000}};
	u64 sum = MAPPED * MP_PAGE_SIZE + 90000 + 7000 + 23 * 4096 + 29 * 4096 + 31 * 4096;
	u32 when;
	size_t i;

	begin();
	put_process(stable);
	for (when = MP_CGROUP_BEFORE; when <= MP_CGROUP_AFTER; when++) {
		put_group(2, when == MP_CGROUP_AFTER ? flags : flags & MP_CGROUP_ASKED, when,
			  2 + when);
		put_stat("memory.current", "current", sum + (u64)off, when, 2 + when);
		for (i = 0; i < sizeof(stat) / sizeof(stat[0]); i++)
			put_stat("memory.stat", stat[i].name, stat[i].value, when, 2 + when);
	}
	if (flags & MP_CGROUP_PAGES) {
		put_stat("/proc/kpagecgroup", "file", 23 * 4096, MP_CGROUP_AFTER, 4);
		put_stat("/proc/kpagecgroup", "shmem", 29 * 4096, MP_CGROUP_AFTER, 4);
		put_stat("/proc/kpagecgroup", "anon_mapped", 31 * 4096, MP_CGROUP_AFTER, 4);
	}
	return join();
}

static void a_v2_group_has_its_rows(void)
{
	struct report *r = v2(MP_CGROUP_ASKED | MP_CGROUP_PAGES, 1, 0);
	const struct check *c = &r->check[COST_CHARGED];

	report("pages that nobody maps are exact",
	       is(charged(r, "file (not mapped)"), 23 * 4096, 0) &&
		       is(charged(r, "shmem (not mapped)"), 29 * 4096, 0));
	report("mapped outside is exact when all stood still",
	       is(charged(r, "anon (mapped outside)"), 31 * 4096, 0));
	report("keys of memory.stat are inferred", is(charged(r, "slab_reclaimable"), 0, 10000) &&
							   is(charged(r, "pagetables"), 0, 30000) &&
							   is(charged(r, "sock"), 0, 7000));
	report("kernel memory without a key of its own",
	       is(charged(r, "kernel (other)"), 0, 90000 - 65000));
	report("the total counts only the pages charged here",
	       cost_value(&r->total[COST_CHARGED]) ==
		       (s64)(MAPPED * 4096 + 90000 + 7000 + 83 * 4096));
	report("resident counts all 13", cost_value(&r->total[COST_RESIDENT]) == 13 * 4096);
	report("it adds up", c->status == CHECK_OK && !c->residual && !strcmp(c->scope, "cgroup"));
	report("tolerance: by cpu and group, and memory.stat's delay",
	       c->tolerance == ADVANCE + STAT_LAG);
	join_free(&r);

	r = v2(MP_CGROUP_ASKED | MP_CGROUP_PAGES, 0, 0);
	report("mapped outside is inferred when it ran on",
	       is(charged(r, "anon (mapped outside)"), 0, 31 * 4096) &&
		       is(charged(r, "file (not mapped)"), 23 * 4096, 0));
	join_free(&r);
}

static void the_check_finds_what_is_missing(void)
{
	struct report *r = v2(MP_CGROUP_ASKED | MP_CGROUP_PAGES, 1, (s64)(ADVANCE + STAT_LAG));

	report("what is charged in advance is no residual to complain of",
	       r->check[COST_CHARGED].status == CHECK_OK &&
		       r->check[COST_CHARGED].residual == (s64)(ADVANCE + STAT_LAG));
	join_free(&r);
	r = v2(MP_CGROUP_ASKED | MP_CGROUP_PAGES, 1, (s64)(ADVANCE + STAT_LAG + 1));
	report("one byte more is",
	       r->check[COST_CHARGED].status == CHECK_RESIDUAL &&
		       r->check[COST_CHARGED].residual == (s64)(ADVANCE + STAT_LAG + 1) &&
		       !r->check[COST_CHARGED].unattributed);
	join_free(&r);
	r = v2(MP_CGROUP_ASKED | MP_CGROUP_PAGES, 0, (s64)(ADVANCE + STAT_LAG + 1));
	report("of a running group it is drift", r->check[COST_CHARGED].status == CHECK_DRIFT);
	join_free(&r);
}

static void what_cannot_be_judged_says_so(void)
{
	struct report *r = v2(0, 1, 0);
	size_t i;

	report("without the pages it is not judged",
	       r->check[COST_CHARGED].status == CHECK_UNJUDGED &&
		       strstr(r->check[COST_CHARGED].reason, "kpagecgroup"));
	for (i = 0; i < r->nr_rows && r->rows[i].kind == ORIGIN_MEMCG; i++)
		;
	report("what the process has of it is unknown, not 0",
	       i < r->nr_rows && !r->rows[i].cost[COST_CHARGED].known &&
		       r->rows[i].cost[COST_RESIDENT].known);
	report("and cache is what memory.stat says of it",
	       is(charged(r, "file (not mapped)"), 0, 600000));
	join_free(&r);
	r = v2(MP_CGROUP_ASKED | MP_CGROUP_PAGES | MP_CGROUP_ROOT, 1, 0);
	report("the root is not judged", r->check[COST_CHARGED].status == CHECK_UNJUDGED);
	join_free(&r);

	begin();
	put_process(1);
	put_group(2, 0, MP_CGROUP_START, 1);
	put_stat("memory.current", "current", 4096, MP_CGROUP_START, 1);
	r = join();
	report("a group that went is not judged and has no rows",
	       r->check[COST_CHARGED].status == CHECK_UNJUDGED && r->nr_rows == 1);
	join_free(&r);

	begin();
	put_process(1);
	r = join();
	report("without a cgroup charged is unknown, not 0",
	       !r->memcg && !r->total[COST_CHARGED].known && !r->rows[0].cost[COST_CHARGED].known &&
		       !r->check[COST_CHARGED].judged && cost_absent(r, COST_CHARGED));
	join_free(&r);
}

static void a_v1_group_splits_its_kernel_memory(void)
{
	struct report *r;
	u32 when;

	begin();
	put_process(1);
	for (when = MP_CGROUP_BEFORE; when <= MP_CGROUP_AFTER; when++) {
		put_group(1, MP_CGROUP_ASKED | MP_CGROUP_PAGES, when, 2 + when);
		put_stat("memory.usage_in_bytes", "current", MAPPED * 4096 + 50 * 4096, when,
			 2 + when);
		put_stat("memory.kmem.usage_in_bytes", "kmem", 50 * 4096, when, 2 + when);
		put_stat("memory.stat", "total_swap", 8192, when, 2 + when);
	}
	put_stat("/proc/kpagecgroup", "pagetables", 19 * 4096, MP_CGROUP_AFTER, 4);
	put_stat("/proc/kpagecgroup", "kernel", 13 * 4096, MP_CGROUP_AFTER, 4);
	r = join();
	report("pages are exact, the rest inferred",
	       is(charged(r, "kmem (page tables)"), 19 * 4096, 0) &&
		       is(charged(r, "kmem (pages: pipes, stacks, vmalloc)"), 13 * 4096, 0) &&
		       is(charged(r, "kmem (slab, percpu)"), 0, 18 * 4096));
	report("its tolerance has no delay of memory.stat",
	       r->check[COST_CHARGED].status == CHECK_OK && !r->check[COST_CHARGED].residual &&
		       r->check[COST_CHARGED].tolerance == ADVANCE);
	report("swap is a key of the tree",
	       memcg_find(r->memcg, NULL, "swap", MP_CGROUP_AFTER)->value == 8192);
	join_free(&r);
}

/* As Linux 5.10 has it: neither page tables nor a sum of the kernel's are keys. */
static void what_memory_stat_does_not_tell_is_searched(void)
{
	struct report *r;
	u32 when;

	begin();
	put_process(1);
	for (when = MP_CGROUP_BEFORE; when <= MP_CGROUP_AFTER; when++) {
		put_group(2, MP_CGROUP_ASKED | MP_CGROUP_PAGES, when, 2 + when);
		put_stat("memory.current", "current", (MAPPED + 19 + 13) * 4096 + 17, when,
			 2 + when);
		put_stat("memory.stat", "kernel_stack", 4 * 4096, when, 2 + when);
		put_stat("memory.stat", "percpu", 17, when, 2 + when);
	}
	put_stat("/proc/kpagecgroup", "pagetables", 19 * 4096, MP_CGROUP_AFTER, 4);
	put_stat("/proc/kpagecgroup", "kernel", 13 * 4096, MP_CGROUP_AFTER, 4);
	r = join();
	report("page tables and the rest of the kernel's pages, stacks once",
	       is(charged(r, "pagetables"), 0, 19 * 4096) &&
		       is(charged(r, "kernel_stack"), 0, 4 * 4096) &&
		       is(charged(r, "kernel (other)"), 0, 9 * 4096) &&
		       !r->check[COST_CHARGED].residual);
	join_free(&r);
}

static void a_figure_nobody_can_believe_is_refused(void)
{
	struct report *r = NULL;
	struct mp_ev_end end = {0};

	begin();
	put_process(1);
	put_group(2, MP_CGROUP_ASKED | MP_CGROUP_PAGES, MP_CGROUP_BEFORE, 3);
	put_group(2, MP_CGROUP_ASKED | MP_CGROUP_PAGES, MP_CGROUP_AFTER, 4);
	put_stat("memory.stat", "sock", ~0ull, MP_CGROUP_AFTER, 4);
	put(MP_EV_END, 9, &end, sizeof(end));
	trace_writer_close(&w);
	report("2^64 - 1 bytes of sockets", join_file(path, OWNER_AUTO, &r) == -EBADMSG && !r);
}

int main(void)
{
	char old[sizeof(path) + 4];
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	a_v2_group_has_its_rows();
	the_check_finds_what_is_missing();
	what_cannot_be_judged_says_so();
	a_v1_group_splits_its_kernel_memory();
	what_memory_stat_does_not_tell_is_searched();
	a_figure_nobody_can_believe_is_refused();
	unlink(path);
	snprintf(old, sizeof(old), "%s.old", path);
	unlink(old);
	return failed;
}
