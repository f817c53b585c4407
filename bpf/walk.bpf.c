/* SPDX-License-Identifier: GPL-2.0-only
 * The page-table walk: state of every page of one address space, read from the tables themselves
 * under the mmap lock the task_vma iterator holds. One pass reads for at most walk_budget_ns and
 * leaves its place in walk_next. Runs of equal pages are folded here, so that a homogeneous GiB is
 * one element.
 *
 * Every constant it trusts (base of the direct map, of vmemmap, levels, frame mask) was measured on
 * memprov's own pages and is frozen in rodata; addresses come from the VMA in hand only.
 *
 * x86-64 only. */
#include "shared/walk.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
};

struct shmem_inode_info {
	unsigned long swapped;
	struct inode vfs_inode;
};

struct xarray {
	void *xa_head;
};

struct address_space {
	struct xarray i_pages;
};

struct file {
	struct inode *f_inode;
	struct address_space *f_mapping;
};

struct mm_struct___walk {
	void *pgd;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags;
	struct mm_struct___walk *vm_mm;
	struct file *vm_file;
};

struct bpf_iter__task_vma {
	struct task_struct *task;
	struct vm_area_struct *vma;
};

struct page___walk {
	unsigned long compound_head;
	void *mapping;
	struct {
		int counter;
	} _mapcount;
	struct {
		int counter;
	} compound_mapcount; /* of the first tail page */
};

/* What compound_head has become in Linux 7. */
struct page___info {
	unsigned long compound_info;
};

struct folio {
	struct {
		int counter;
	} _entire_mapcount, _large_mapcount;
};

enum pageflags___walk { PG_head = 6, PG_young = 29 };

/* A named kernel struct that starts with a 64-bit word and always will: the type through which
 * word() reads. */
struct timespec64 {
	long long tv_sec;
};

#pragma clang attribute pop

/* Linux 6.2, commit a35b9af4ec2c ("bpf: Add a kfunc for generic type cast"). */
extern void *bpf_rdonly_cast(void *obj, __u32 btf_id) __ksym __weak;

#define S_IFMT	     0170000
#define S_IFREG	     0100000
#define TMPFS_MAGIC  0x01021994
#define VM_HUGETLB   0x400000ul
#define VM_NOT_COW   (0x8ul | 0x400ul | 0x10000000ul) /* SHARED, PFNMAP, MIXEDMAP */

#define PTE_PRESENT  (1ull << 0)
#define PTE_WRITE    (1ull << 1)
#define PTE_ACCESSED (1ull << 5)
#define PTE_LEAF     (1ull << 7) /* in a PMD or PUD */
#define PTE_PROTNONE (1ull << 8) /* without PRESENT */
#define PTE_SPECIAL  (1ull << 9)

#define TYPE_MARKER  31
#define SWP_PFN_MASK ((1ull << 40) - 1)

#define HIGHEST_MASK (1ull << 28) /* struct pages of a folio of 16 GiB */

#define PAGE_SHIFT   12
#define PMD_SHIFT    21
#define PUD_SHIFT    30
#define P4D_SHIFT    39
#define PGD_SHIFT    48 /* of five levels */

const volatile u64 cfg_direct = 0; /* kernel address of physical page 0 */
const volatile u64 cfg_vmemmap = 0; /* struct page of frame 0 */
const volatile u64 cfg_frame_mask = 0; /* bits of a table entry that hold the frame */
const volatile u32 cfg_levels = 4;
const volatile u32 cfg_cast = 0; /* bpf_rdonly_cast is there: half the time of a read by a helper */
const volatile u32 cfg_first_non_swap = 23;
const volatile u32 cfg_nr_nodes = 0;
const volatile struct mp_walk_node cfg_nodes[MP_WALK_MAX_NODES] = {};

/* In: */
u64 walk_cursor = 0, walk_limit = 0, walk_budget_ns = 0;
u32 walk_accessed = 0; /* say which pages were accessed */
/* Out: */
u64 walk_next = 0; /* ~0: the space is done */
u64 walk_hold_ns = 0; /* longest time spent inside one call of the iterator */
u64 walk_tables = 0; /* blocks of 512 pages read in this pass */
u64 walk_failed = 0; /* tables that could not be read: the walk is void */
u64 walk_handed = 0; /* accessed pages whose bit somebody else has cleared */
u32 walk_nr_runs = 0, walk_nr_vmas = 0;
/* Kept during a pass. */
u64 walk_deadline = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MP_WALK_MAX_RUNS);
	__type(key, u32);
	__type(value, struct mp_walk_run);
} walk_runs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MP_WALK_MAX_VMAS);
	__type(key, u32);
	__type(value, struct mp_walk_vma);
} walk_vmas SEC(".maps");

/* State of the pass, in a map and not on the stack: what the verifier does not follow cannot make
 * it follow every combination. One walker per object, so one copy will do. */
struct walk {
	u64 addr, end, top;
	u64 pmds, pmds_of; /* table of the GiB pmds_of; 0: nothing there */
	u64 base, frame; /* of the block being decoded */
	struct mp_walk_run run;
	u64 plain_next; /* where a run of plain pages goes on; 0: the run is of another kind */
	u64 node_start, node_end; /* frames of the node the run is on */
	u64 giant; /* the PUD leaf just met, in a hugetlb VMA */
	u32 first, last, full, flags, tries, hugetlb;
	u32 cow; /* in this VMA what may be written is nobody else's */
};
static struct walk w = {};
static struct mp_walk_table walk_table = {}; /* the one being decoded */

/* A load from kernel memory that yields 0 where nothing is mapped. */
static __always_inline u64 word(u64 addr)
{
	u64 v = 0;

	if (cfg_cast) {
		struct timespec64 *t =
			bpf_rdonly_cast((void *)addr, bpf_core_type_id_kernel(struct timespec64));

		return (u64)t->tv_sec;
	}
	bpf_probe_read_kernel(&v, sizeof(v), (void *)addr);
	return v;
}

/* Frame a leaf maps. Without PRESENT it is stored inverted (against L1TF), the low bits too; in a
 * huge leaf they are no part of it (PAT lies there). */
static __always_inline u64 leaf_frame(u64 entry, u32 shift)
{
	entry = entry & PTE_PRESENT ? entry : ~entry;
	return (entry & cfg_frame_mask & ~((1ull << shift) - 1)) >> PAGE_SHIFT;
}

static __always_inline u64 table_of(u64 entry)
{
	return cfg_direct + (entry & cfg_frame_mask);
}

static __always_inline u32 node_of(u64 pfn)
{
	u32 i;

	for (i = 0; i < MP_WALK_MAX_NODES && i < cfg_nr_nodes; i++)
		if (pfn >= cfg_nodes[i].start_pfn && pfn < cfg_nodes[i].end_pfn) {
			w.node_start = cfg_nodes[i].start_pfn;
			w.node_end = cfg_nodes[i].end_pfn;
			return cfg_nodes[i].node;
		}
	w.node_start = w.node_end = 0;
	return ~0u;
}

static __always_inline void flush(void)
{
	u32 at = walk_nr_runs;
	struct mp_walk_run *r;

	if (!w.run.pages)
		return;
	r = bpf_map_lookup_elem(&walk_runs, &at);
	if (r) {
		*r = w.run;
		walk_nr_runs = at + 1;
	}
	w.run.pages = 0;
}

static __always_inline void add(u64 addr, u64 pfn, u32 flags, u32 mapcount, u32 node)
{
	struct mp_walk_run *r = &w.run;

	if (r->pages && r->start + ((u64)r->pages << PAGE_SHIFT) == addr && r->flags == flags &&
	    r->mapcount == mapcount && r->node == node &&
	    (mapcount > 1	   ? r->pfn + r->pages == pfn
	     : flags & MP_WALK_ASK ? r->pfn == pfn
				   : 1)) {
		r->pages++;
		return;
	}
	flush();
	w.plain_next = 0;
	r->start = addr;
	r->pfn = pfn;
	r->pages = 1;
	r->flags = flags;
	r->mapcount = mapcount;
	r->node = node;
}

#define PAGE_FIELD(page, f) word((page) + (u64)bpf_core_field_offset(struct page___walk, f))

static __always_inline u64 compound_word(u64 page)
{
	if (bpf_core_field_exists(struct page___walk, compound_head))
		return PAGE_FIELD(page, compound_head);
	return word(page + (u64)bpf_core_field_offset(struct page___info, compound_info));
}

/* Head of the folio that a tail page is in, by its compound word: an address, or in Linux 7 a mask
 * that makes one of the tail's. No struct page lies where a mask would point. */
static __always_inline u64 head_of(u64 page, u64 compound)
{
	return compound > -HIGHEST_MASK ? page & compound : compound - 1;
}

static __always_inline u32 mapcount_of_whole(u64 head)
{
	/* Linux 6.2 made it the folio's; before it is at the same place, in the second page. */
	if (bpf_core_field_exists(struct folio, _entire_mapcount))
		return (u32)word(head +
				 (u64)bpf_core_field_offset(struct folio, _entire_mapcount)) +
		       1;
	return (u32)PAGE_FIELD(head + (u64)bpf_core_type_size(struct page), compound_mapcount) + 1;
}

/* Was the page that an entry maps accessed since the bit was cleared? Not asked: 0. */
static __always_inline u32 accessed(u64 entry)
{
	return walk_accessed && entry & PTE_ACCESSED ? MP_PAGE_YOUNG : 0;
}

/* DAMON and idle page tracking leave the bit they clear with the page, from where clear_refs takes
 * it, too. Of a page with one mapping it was this one's. */
static __always_inline u32 handed_on(u64 page)
{
	if (!walk_accessed || !bpf_core_enum_value_exists(enum pageflags___walk, PG_young) ||
	    !(word(page) >> bpf_core_enum_value(enum pageflags___walk, PG_young) & 1))
		return 0;
	walk_handed++;
	return MP_PAGE_YOUNG;
}

/* A mapped frame that counts in Rss: whose it is and how often it is mapped, as smaps counts. */
static __always_inline void add_frame(u64 addr, u64 pfn, u32 flags)
{
	u64 page = cfg_vmemmap + pfn * (u64)bpf_core_type_size(struct page);
	u64 compound = compound_word(page), head = page, mapping;
	u32 mapcount = (u32)PAGE_FIELD(page, _mapcount) + 1;

	if (compound & 1)
		head = head_of(page, compound);
	mapping = PAGE_FIELD(head, mapping);
	if (compound & 1 || word(page) >> bpf_core_enum_value(enum pageflags___walk, PG_head) & 1)
		mapcount += mapcount_of_whole(head);
	else if (mapcount == 1 && !(flags & MP_PAGE_YOUNG))
		flags |= handed_on(page);
	flags |= MP_PAGE_RESIDENT;
	if (!(mapping & 1))
		flags |= MP_PAGE_FILE;
	else if ((mapping & 3) == 3)
		flags |= MP_PAGE_KSM;
	if (!mapping)
		flags |= MP_WALK_ASK;
	if (flags & MP_PAGE_MIGRATING)
		mapcount = 1;
	add(addr, pfn, flags, mapcount ? mapcount : 1, node_of(pfn));
	w.plain_next = (flags & ~MP_PAGE_YOUNG) == MP_PAGE_RESIDENT && mapcount == 1
			       ? addr + MP_PAGE_SIZE
			       : 0;
}

/* A small anonymous page that nobody else maps, by its struct page. */
static __always_inline int is_plain(u64 pfn)
{
	u64 page = cfg_vmemmap + pfn * (u64)bpf_core_type_size(struct page);

	return !(compound_word(page) & 1) && (PAGE_FIELD(page, mapping) & 3) == 1 &&
	       !(u32)PAGE_FIELD(page, _mapcount) &&
	       !(word(page) >> bpf_core_enum_value(enum pageflags___walk, PG_head) & 1);
}

/* Most pages: private, small, anonymous, like the one before. Says what add_frame would, in fewer
 * steps: fork, KSM and the page cache all leave a private mapping its pages write-protected, so one
 * that may be written is anonymous and its own, and its struct page need not be touched. */
static __always_inline int add_plain(u64 addr, u64 pte)
{
	u64 pfn;

	if (addr != w.plain_next || w.flags || (pte & (PTE_PRESENT | PTE_SPECIAL)) != PTE_PRESENT)
		return 0;
	/* One without the bit is asked whether that was handed on. */
	if (walk_accessed && !(pte & PTE_ACCESSED && w.run.flags & MP_PAGE_YOUNG))
		return 0;
	pfn = (pte & cfg_frame_mask) >> PAGE_SHIFT;
	if (pfn < w.node_start || pfn >= w.node_end)
		return 0;
	if (!(w.cow && pte & PTE_WRITE) && !is_plain(pfn))
		return 0;
	w.run.pages++;
	w.plain_next = addr + MP_PAGE_SIZE;
	return 1;
}

/* An entry that is not present: swap, or one of the kinds that only look like it. */
static __always_inline void add_absent(u64 addr, u64 pte)
{
	u32 type = pte >> 59;
	u64 offset = (~pte << 5) >> 14;

	if (type < cfg_first_non_swap)
		add(addr, 0, MP_PAGE_SWAPPED, 1, ~0u);
	else if (type != TYPE_MARKER)
		add_frame(addr, offset & SWP_PFN_MASK, MP_PAGE_MIGRATING | w.flags);
}

/* Eight of them at once, without a look at the rest of the state for each. */
static __always_inline int add_eight(u64 at)
{
	u64 all = ~0ull, any = 0, pte, nodes = w.node_end - w.node_start;
	u32 k, strange = 0;

	if (w.base + (at << PAGE_SHIFT) != w.plain_next || w.flags || !w.cow)
		return 0;
	for (k = 0; k < 8; k++) {
		pte = walk_table.e[(at + k) & 511];
		all &= pte;
		any |= pte;
		strange |= ((pte & cfg_frame_mask) >> PAGE_SHIFT) - w.node_start >= nodes;
	}
	if (strange || (all & (PTE_PRESENT | PTE_WRITE)) != (PTE_PRESENT | PTE_WRITE) ||
	    any & PTE_SPECIAL)
		return 0;
	if (walk_accessed && !(all & PTE_ACCESSED && w.run.flags & MP_PAGE_YOUNG))
		return 0;
	w.run.pages += 8;
	w.plain_next += 8 * MP_PAGE_SIZE;
	return 1;
}

/* Not static: the verifier checks it once, not for each of its eight calls. */
__noinline int decode_pte(u64 at)
{
	u64 addr, pte;

	pte = walk_table.e[at & 511];
	if (!pte)
		return 0;
	addr = w.base + (at << PAGE_SHIFT);
	if (add_plain(addr, pte))
		return 0;
	if (!(pte & (PTE_PRESENT | PTE_PROTNONE)))
		add_absent(addr, pte);
	else if (pte & PTE_SPECIAL)
		add(addr, leaf_frame(pte, PAGE_SHIFT), MP_WALK_ASK, 1, ~0u);
	else
		add_frame(addr, leaf_frame(pte, PAGE_SHIFT), w.flags | accessed(pte));
	return 0;
}

/* Entries come in eights from a multiple of eight on, of which the first and the last may reach out
 * of the range. */
static long decode_eight(u32 i, void *ctx)
{
	u32 at = (w.first & ~7u) + 8 * i, k;

	if (at >= w.first && at + 8 <= w.last && add_eight(at))
		return 0;
	for (k = at; k < at + 8; k++)
		if (k >= w.first && k < w.last)
			decode_pte(k);
	return 0;
}

static long decode_huge(u32 i, void *ctx)
{
	u64 at = w.first + i;

	add_frame(w.base + (at << PAGE_SHIFT), w.frame + at, w.flags);
	return 0;
}

/* Table of PMDs for one address, 0: none. */
static __always_inline u64 find_pmds(u64 addr, u64 *ret_skip)
{
	u64 table = w.top, e;

	if (cfg_levels == 5) {
		*ret_skip = 1ull << PGD_SHIFT;
		e = word(table + (addr >> PGD_SHIFT & 511) * 8);
		if (!(e & PTE_PRESENT))
			return 0;
		table = table_of(e);
	}
	*ret_skip = 1ull << P4D_SHIFT;
	e = word(table + (addr >> P4D_SHIFT & 511) * 8);
	if (!(e & PTE_PRESENT))
		return 0;
	*ret_skip = 1ull << PUD_SHIFT;
	e = word(table_of(e) + (addr >> PUD_SHIFT & 511) * 8);
	/* A leaf here is hugetlb or DAX: neither is in Rss. */
	if (e & PTE_LEAF && w.hugetlb)
		w.giant = e;
	if (!(e & PTE_PRESENT) || e & PTE_LEAF)
		return 0;
	return table_of(e);
}

/* 512 pages under one table. 0 when the table went away while it was copied: look again. */
static __always_inline int small_pages(u64 pmd_at, u64 pmd, u32 pages)
{
	if (bpf_probe_read_kernel(&walk_table, sizeof(walk_table), (void *)table_of(pmd)))
		walk_failed++;
	/* khugepaged and PT_RECLAIM take tables away under the lock we hold. */
	if (word(pmd_at) != pmd && w.tries++ < 3)
		return 0;
	w.flags = w.tries > 3 ? MP_PAGE_RACING : 0;
	w.tries = 0;
	walk_tables++;
	w.last = w.first + pages;
	bpf_loop((w.last + 7) / 8 - w.first / 8, decode_eight, NULL, 0);
	return 1;
}

static __always_inline void huge_page(u64 pmd, u32 pages)
{
	u32 type = pmd >> 59;
	u64 head;

	w.flags = MP_PAGE_THP;
	if (pmd & (PTE_PRESENT | PTE_PROTNONE | PTE_LEAF)) {
		if (pmd & PTE_SPECIAL)
			return;
		w.frame = leaf_frame(pmd, PMD_SHIFT);
		w.flags |= accessed(pmd);
		head = cfg_vmemmap + w.frame * (u64)bpf_core_type_size(struct page);
		if (walk_accessed && !(pmd & PTE_ACCESSED) && mapcount_of_whole(head) == 1)
			w.flags |= handed_on(head);
	} else {
		if (type < cfg_first_non_swap || type == TYPE_MARKER)
			return;
		w.frame = (~pmd << 5) >> 14 & SWP_PFN_MASK & ~511ull;
		w.flags |= MP_PAGE_MIGRATING;
	}
	walk_tables++;
	bpf_loop(pages, decode_huge, NULL, 0);
}

/* Pages of the hugetlb pool: present is all there is to say of them. */
static __always_inline void hugetlb_page(u64 entry, u64 addr, u64 to)
{
	u64 pfn = leaf_frame(entry, PMD_SHIFT);
	struct mp_walk_run *r = &w.run;

	if (!(entry & (PTE_PRESENT | PTE_PROTNONE | PTE_LEAF)) && entry >> 59 < cfg_first_non_swap)
		return;
	if (entry >> 59 == TYPE_MARKER && !(entry & (PTE_PRESENT | PTE_PROTNONE | PTE_LEAF)))
		return;
	add(addr, pfn, MP_PAGE_HUGETLB, 1, node_of(pfn));
	r->pages += ((to - addr) >> PAGE_SHIFT) - 1;
	walk_tables++;
}

/* One PMD entry, or the hole around it. */
static long step(u32 i, void *ctx)
{
	u64 next, skip = 0, pmd, pmd_at;

	if (w.addr >= w.end)
		return 1;
	if (w.pmds_of != (w.addr >> PUD_SHIFT) + 1) {
		w.pmds = find_pmds(w.addr, &skip);
		if (!w.pmds) {
			u64 at = w.addr;

			w.addr = (w.addr | (skip - 1)) + 1;
			if (w.giant)
				hugetlb_page(w.giant, at, w.addr < w.end ? w.addr : w.end);
			w.giant = 0;
			return 0;
		}
		w.pmds_of = (w.addr >> PUD_SHIFT) + 1;
	}
	next = (w.addr | ((1ull << PMD_SHIFT) - 1)) + 1;
	pmd_at = w.pmds + (w.addr >> PMD_SHIFT & 511) * 8;
	pmd = word(pmd_at);
	if (pmd) {
		u64 to = next < w.end ? next : w.end;

		if (walk_nr_runs + 520 > MP_WALK_MAX_RUNS ||
		    (walk_tables && bpf_ktime_get_ns() > walk_deadline)) {
			w.full = 1;
			return 1;
		}
		w.base = w.addr & ~((1ull << PMD_SHIFT) - 1);
		w.first = (w.addr - w.base) >> PAGE_SHIFT;
		if (w.hugetlb)
			hugetlb_page(pmd, w.addr, to);
		else if (!(pmd & PTE_PRESENT) || pmd & PTE_LEAF)
			huge_page(pmd, (to - w.addr) >> PAGE_SHIFT);
		else if (!small_pages(pmd_at, pmd, (to - w.addr) >> PAGE_SHIFT))
			return 0;
	}
	w.addr = next;
	return 0;
}

static __always_inline void shmem_of(struct mp_walk_vma *v, struct vm_area_struct *vma)
{
	struct inode *inode = BPF_CORE_READ(vma, vm_file, f_inode);

	if (!inode || BPF_CORE_READ(inode, i_sb, s_magic) != TMPFS_MAGIC)
		return;
	/* devtmpfs has the same magic, and devices in it. */
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return;
	v->is_shmem = 1;
	if (bpf_core_field_exists(struct shmem_inode_info, swapped))
		v->object_swap = BPF_CORE_READ(
			(struct shmem_inode_info *)((u64)inode -
						    bpf_core_field_offset(struct shmem_inode_info,
									  vfs_inode)),
			swapped);
	else
		v->object_swap = 1; /* unknown: ask smaps */
}

SEC("iter/task_vma")
int walk_pass(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct mp_walk_vma *v;
	u64 began = bpf_ktime_get_ns(), held;
	u32 at = walk_nr_vmas;

	if (!vma || vma->vm_end <= walk_cursor)
		return 0;
	if (vma->vm_start >= walk_limit)
		return 1; /* ends the pass: read() says EAGAIN */
	if (!walk_deadline)
		walk_deadline = began + walk_budget_ns;
	v = bpf_map_lookup_elem(&walk_vmas, &at);
	if (!v) {
		walk_next = vma->vm_start > walk_cursor ? vma->vm_start : walk_cursor;
		return 1;
	}
	walk_nr_vmas = at + 1;
	v->start = vma->vm_start;
	v->end = vma->vm_end;
	v->vm_flags = vma->vm_flags;
	v->is_shmem = 0;
	v->object_swap = 0;
	v->first_run = walk_nr_runs;
	v->nr_runs = 0;
	shmem_of(v, vma);
	w.hugetlb = v->vm_flags & VM_HUGETLB ? 1 : 0;
	w.cow = !(v->vm_flags & VM_NOT_COW);
	w.giant = 0;
	w.full = 0;
	w.tries = 0;
	w.pmds_of = 0;
	w.run.pages = 0;
	w.plain_next = 0;
	w.addr = v->start > walk_cursor ? v->start : walk_cursor;
	w.end = v->end < walk_limit ? v->end : walk_limit;
	w.top = (u64)BPF_CORE_READ(vma, vm_mm, pgd);
	bpf_loop(1 << 23, step, NULL, 0);
	flush();
	v->nr_runs = walk_nr_runs - v->first_run;
	held = bpf_ktime_get_ns() - began;
	if (held > walk_hold_ns)
		walk_hold_ns = held;
	if (w.full || w.addr < w.end) {
		walk_next = w.addr;
		return 1;
	}
	return 0;
}

/* ---- calibration: what the walk must know, from memprov's own pages ---- */

u64 cal_addr[MP_CAL_PAGES] = {}; /* one-page memfd mappings */
u64 cal_pfn[MP_CAL_PAGES] = {};
u64 cal_magic[MP_CAL_PAGES] = {}; /* their first word */
u64 cal_page[MP_CAL_PAGES] = {}; /* out: struct page of each */
u64 cal_pgd = 0, cal_direct = 0, cal_page_size = 0;

static long try_base(u32 i, u64 *base)
{
	u32 k;

	for (k = 0; k < MP_CAL_PAGES; k++) {
		u64 got = 0;

		if (bpf_probe_read_kernel(&got, sizeof(got),
					  (void *)(*base + (cal_pfn[k] << PAGE_SHIFT))) ||
		    got != cal_magic[k])
			break;
	}
	if (k == MP_CAL_PAGES) {
		cal_direct = *base;
		return 1;
	}
	*base -= 1ull << PUD_SHIFT;
	return 0;
}

SEC("iter/task_vma")
int calibrate(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	u64 base;
	u32 k;

	if (!vma)
		return 0;
	cal_page_size = bpf_core_type_size(struct page);
	if (!cal_direct && !cal_pgd) {
		cal_pgd = (u64)BPF_CORE_READ(vma, vm_mm, pgd);
		/* KASLR moves the direct map by whole GiB. */
		base = cal_pgd & ~((1ull << PUD_SHIFT) - 1);
		bpf_loop(1 << 16, try_base, &base, 0);
	}
	for (k = 0; k < MP_CAL_PAGES; k++)
		if (vma->vm_start == cal_addr[k])
			cal_page[k] = (u64)BPF_CORE_READ(vma, vm_file, f_mapping, i_pages.xa_head);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
