/* SPDX-License-Identifier: GPL-2.0-only
 * The law of a cgroup: what its processes map (the pictures), what else it is charged page by page
 * (the search through all PFNs) and what the kernel counts without pages (memory.stat) make up
 * memory.current, which is a counter of its own and is only compared with the sum. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/memcg.h"
#include "lib/join/replay.h"

/* mm/memcontrol.c: a cpu charges this many pages in advance (MEMCG_CHARGE_BATCH), for every group.
 * memory.stat is brought up to date when twice as many changes a cpu have come together. */
#define CHARGE_BATCH 64
#define STAT_BATCH   (2 * CHARGE_BATCH)

/* ---- records ---- */

static struct memcg *get(struct replay *p)
{
	if (!p->r->memcg)
		p->r->memcg = calloc(1, sizeof(*p->r->memcg));
	if (!p->r->memcg)
		p->err = -ENOMEM;
	return p->r->memcg;
}

/* Of a recording that goes on the same is read again and again. */
static void forget_reading(struct memcg *m, u32 when)
{
	size_t i, n = 0;

	for (i = 0; i < m->n; i++)
		if (m->figures[i].when != when)
			m->figures[n++] = m->figures[i];
	m->n = n;
}

static int note_group(struct replay *p, const struct mp_ev_cgroup *ev)
{
	struct memcg *m = get(p);

	if (!m)
		return p->err;
	m->path = replay_text(p, ev->path);
	m->version = ev->version;
	m->groups = ev->groups;
	m->flags = ev->flags;
	m->nr_cpus = p->nr_cpus;
	forget_reading(m, ev->when);
	if (ev->when < sizeof(m->read))
		m->read[ev->when] = 1;
	return 0;
}

static int note_figure(struct replay *p, const struct mp_ev_cgroup_stat *ev)
{
	struct memcg *m = get(p);
	struct memcg_figure *f;

	if (!m)
		return p->err;
	if (!(m->n & (m->n - 1))) {
		f = realloc(m->figures, (m->n ? 2 * m->n : 1) * sizeof(*f));
		if (!f)
			return -ENOMEM;
		m->figures = f;
	}
	f = &m->figures[m->n];
	f->source = replay_text(p, ev->source);
	f->name = replay_text(p, ev->name);
	f->value = ev->value;
	f->unit = ev->unit;
	f->state = ev->state;
	f->when = ev->when;
	m->n += f->source && f->name && f->when < sizeof(m->read);
	return 0;
}

int memcg_note(struct replay *p, const struct mp_hdr *rec)
{
	return rec->type == MP_EV_CGROUP ? note_group(p, trace_body(rec, cgroup))
					 : note_figure(p, trace_body(rec, cgroup_stat));
}

int memcg_is_read(const struct memcg *m)
{
	return m && m->read[MP_CGROUP_AFTER];
}

int memcg_copy(const struct memcg *m, struct memcg **ret_m)
{
	struct memcg *copy;

	if (!m)
		return 0;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *m;
	copy->figures = malloc((m->n ? m->n : 1) * sizeof(*m->figures));
	if (!copy->figures) {
		free(copy);
		return -ENOMEM;
	}
	if (m->n)
		memcpy(copy->figures, m->figures, m->n * sizeof(*m->figures));
	*ret_m = copy;
	return 0;
}

void memcg_free(struct memcg **m)
{
	if (*m)
		free((*m)->figures);
	free(*m);
	*m = NULL;
}

const struct memcg_figure *memcg_find(const struct memcg *m, const char *source, const char *name,
				      u32 when)
{
	size_t i;

	for (i = 0; i < m->n; i++) {
		const struct memcg_figure *f = &m->figures[i];

		if (f->when == when && !strcmp(f->name, name) &&
		    (source ? !strcmp(f->source, source)
			    : strcmp(f->source, MEMCG_STAT) && strcmp(f->source, MEMCG_PAGES)))
			return f;
	}
	/* v1 has it only among its keys. */
	if (!source && m->version == 1 && !strcmp(name, "swap"))
		return memcg_find(m, MEMCG_STAT, "total_swap", when);
	return NULL;
}

u32 memcg_latest(const struct memcg *m)
{
	return m->read[MP_CGROUP_NOW]	   ? MP_CGROUP_NOW
	       : m->read[MP_CGROUP_AFTER]  ? MP_CGROUP_AFTER
	       : m->read[MP_CGROUP_BEFORE] ? MP_CGROUP_BEFORE
					   : MP_CGROUP_START;
}

/* ---- rows ---- */

/* Charged pages that no picture shows. mapped: by a process that is not recorded, or between the
 * picture and the search; which of the two is only known when everything stood still. */
static const struct {
	const char *name, *row_v2, *row_v1;
	int mapped;
} page_rows[] = {
	{"anon", "swapcached (not mapped)", "swapcached (not mapped)", 0},
	{"shmem", "shmem (not mapped)", "shmem (not mapped)", 0},
	{"file", "file (not mapped)", "cache (not mapped)", 0},
	{"anon_mapped", "anon (mapped outside)", "rss (mapped outside)", 1},
	{"shmem_mapped", "shmem (mapped outside)", "shmem (mapped outside)", 1},
	{"file_mapped", "file (mapped outside)", "cache (mapped outside)", 1},
	{"hugetlb", "hugetlb", "hugetlb", 0},
};

/* Parts of memory.stat's kernel (v2) that do not overlap. */
static const char *const kernel_keys[] = {
	"slab_reclaimable", "slab_unreclaimable",
	"kernel_stack",	    "pagetables",
	"sec_pagetables",   "percpu",
	"vmalloc",	    "zswap",
};

static u64 figure(const struct memcg *m, const char *source, const char *name, int *ret_known)
{
	const struct memcg_figure *f = memcg_find(m, source, name, MP_CGROUP_AFTER);

	*ret_known = f != NULL;
	return f ? f->value : 0;
}

static int add_row(struct replay *p, const char *name, u64 value, int exact)
{
	u32 origin;

	if (!value)
		return 0;
	if (value >> 50) /* no machine has that much: the file is not to be believed */
		return -EBADMSG;
	origin = origin_get(p, ORIGIN_MEMCG, 0, 0, 0, name);
	if (!origin)
		return p->err;
	p->origins[origin].comm = p->r->memcg->path;
	p->origins[origin].cost[COST_CHARGED] = (struct cost){
		.exact = exact ? (s64)value : 0,
		.inferred = exact ? 0 : (s64)value,
		.known = 1,
	};
	return 0;
}

static int rows_by_pages(struct replay *p, const struct memcg *m)
{
	int err = 0, known;
	size_t i;

	for (i = 0; i < sizeof(page_rows) / sizeof(page_rows[0]) && !err; i++) {
		u64 v = figure(m, MEMCG_PAGES, page_rows[i].name, &known);

		err = add_row(p, m->version == 1 ? page_rows[i].row_v1 : page_rows[i].row_v2, v,
			      !page_rows[i].mapped || p->r->stable);
	}
	return err;
}

/* Without the search: page cache and shared memory in one, and up to a batch out of date. */
static int rows_by_stat(struct replay *p, const struct memcg *m)
{
	int v1 = m->version == 1, have, too;
	u64 all = figure(m, MEMCG_STAT, v1 ? "total_cache" : "file", &have);
	u64 mapped = figure(m, MEMCG_STAT, v1 ? "total_mapped_file" : "file_mapped", &too);

	if (!have || !too || mapped > all)
		return 0;
	return add_row(p, v1 ? "cache (not mapped)" : "file (not mapped)", all - mapped, 0);
}

/* v1 has one counter for all kernel memory; the search splits off what is whole pages. */
static int kernel_rows_v1(struct replay *p, const struct memcg *m)
{
	int known, tables_known, pages_known, err;
	u64 all = figure(m, NULL, "kmem", &known);
	u64 tables = figure(m, MEMCG_PAGES, "pagetables", &tables_known);
	u64 pages = figure(m, MEMCG_PAGES, "kernel", &pages_known);

	if (!known)
		return 0;
	if (!tables_known || !pages_known || tables + pages > all)
		return add_row(p, "kmem", all, 1);
	err = add_row(p, "kmem (page tables)", tables, 1);
	if (!err)
		err = add_row(p, "kmem (pages: pipes, stacks, vmalloc)", pages, 1);
	if (!err)
		err = add_row(p, "kmem (slab, percpu)", all - tables - pages, 0);
	return err;
}

/* What memory.stat does not tell, page tables before Linux 5.11 and all of the kernel's
 * before 5.18, the search does. */
static int rows_of_search(struct replay *p, const struct memcg *m)
{
	int has_tables, has_all, known, err = 0;
	u64 tables = figure(m, MEMCG_PAGES, "pagetables", &known);
	u64 pages = figure(m, MEMCG_PAGES, "kernel", &known);
	u64 told = figure(m, MEMCG_STAT, "kernel_stack", &known) +
		   figure(m, MEMCG_STAT, "vmalloc", &known);

	figure(m, MEMCG_STAT, "pagetables", &has_tables);
	figure(m, MEMCG_STAT, "kernel", &has_all);
	if (!has_tables)
		err = add_row(p, "pagetables", tables, 0);
	if (!err && !has_all && pages > told)
		err = add_row(p, "kernel (other)", pages - told, 0);
	return err;
}

static int kernel_rows_v2(struct replay *p, const struct memcg *m)
{
	int known, err = 0;
	u64 all = figure(m, MEMCG_STAT, "kernel", &known), sum = 0;
	size_t i;

	for (i = 0; i < sizeof(kernel_keys) / sizeof(kernel_keys[0]) && !err; i++) {
		int have;
		u64 v = figure(m, MEMCG_STAT, kernel_keys[i], &have);

		sum += v;
		err = add_row(p, kernel_keys[i], v, 0);
	}
	if (!err && known && all > sum)
		err = add_row(p, "kernel (other)", all - sum, 0);
	if (!err)
		err = rows_of_search(p, m);
	return err ? err : add_row(p, "sock", figure(m, MEMCG_STAT, "sock", &known), 0);
}

/* Only beside a last picture: rows of another time than the pages would not add up to anything. */
int memcg_rows(struct replay *p)
{
	const struct memcg *m = p->r->memcg;
	int err;

	if (!m || !m->read[MP_CGROUP_BEFORE] || !m->read[MP_CGROUP_AFTER])
		return 0;
	err = m->flags & MP_CGROUP_PAGES ? rows_by_pages(p, m) : rows_by_stat(p, m);
	if (!err)
		err = m->version == 1 ? kernel_rows_v1(p, m) : kernel_rows_v2(p, m);
	return err;
}

/* ---- the law ---- */

static const char *unjudged(const struct memcg *m)
{
	if (!m->read[MP_CGROUP_BEFORE] || !m->read[MP_CGROUP_AFTER])
		return "the group or its processes were gone before the last picture";
	if (m->flags & MP_CGROUP_ROOT)
		return "the root group has no counter: the kernel adds up memory.stat";
	if (m->read[MP_CGROUP_NOW])
		return "top does not search all of memory for pages that no process maps";
	if (!(m->flags & MP_CGROUP_PAGES))
		return "which pages are charged here is unknown: no search through "
		       "/proc/kpagecgroup";
	if (!memcg_find(m, NULL, "current", MP_CGROUP_BEFORE) ||
	    !memcg_find(m, NULL, "current", MP_CGROUP_AFTER))
		return "the kernel's counter could not be read";
	return NULL;
}

void memcg_judge(struct report *r)
{
	struct check *c = &r->check[COST_CHARGED];
	const struct memcg *m = r->memcg;
	u64 sum = c->attributed + c->unattributed, lo, hi;

	if (!m)
		return;
	c->scope = "cgroup";
	c->status = CHECK_UNJUDGED;
	c->reason = unjudged(m);
	if (c->reason)
		return;
	c->judged = 1;
	c->kernel_before = memcg_find(m, NULL, "current", MP_CGROUP_BEFORE)->value;
	c->kernel = memcg_find(m, NULL, "current", MP_CGROUP_AFTER)->value;
	c->tolerance = (u64)CHARGE_BATCH * MP_PAGE_SIZE * m->nr_cpus * m->groups;
	if (m->version == 2)
		c->tolerance += (u64)STAT_BATCH * MP_PAGE_SIZE * m->nr_cpus;
	c->residual = (s64)(c->kernel - sum);
	lo = c->kernel < c->kernel_before ? c->kernel : c->kernel_before;
	hi = c->kernel > c->kernel_before ? c->kernel : c->kernel_before;
	if (sum + c->tolerance >= lo && sum <= hi + c->tolerance) {
		c->status = CHECK_OK;
		c->reason = "within what the kernel charges in advance, by cpu and group";
		return;
	}
	c->status = r->stable ? CHECK_RESIDUAL : CHECK_DRIFT;
	c->reason = r->stable ? "everything stood still: rows are missing or counted twice"
			      : "the group ran on while its pages were searched";
}
