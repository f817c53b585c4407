/* SPDX-License-Identifier: GPL-2.0-only
 * The snapshot provider that needs no BPF: smaps for the VMAs, pagemap for the entries, kpageflags
 * and kpagecount for the frames. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/capture/nodes.h"
#include "lib/capture/pagecg.h"
#include "lib/capture/picture.h"
#include "lib/capture/privilege.h"

/* include/uapi/linux/fs.h of 6.7+ (commit 52526ca7fdb9, "fs/proc/task_mmu: implement IOCTL to get
 * and optionally clear info about PTEs"); older headers lack it. */
struct pm_scan {
	u64 size, flags, start, end, walk_end, vec, vec_len, max_pages;
	u64 category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct pm_region {
	u64 start, end, categories;
};
#define PM_SCAN	       _IOWR('f', 16, struct pm_scan)
#define PM_PRESENT     (1u << 3)
#define PM_SWAPPED     (1u << 4)
#define PM_ZERO	       (1u << 5)
#define PM_HUGE	       (1u << 6)

#define PM_BIT_PRESENT (1ull << 63)
#define PM_BIT_SWAP    (1ull << 62)
#define PM_BIT_FILE    (1ull << 61)
#define PM_BIT_GUARD   (1ull << 58)
#define PM_PFN_MASK    ((1ull << 55) - 1)

/* Types from here on are markers, device, migration and hwpoison entries, not swap: 32 types less
 * the most that any config takes away. */
#define FIRST_NON_SWAP_TYPE 23
#define TYPE_MARKER	    31

#define BLOCK_PAGES	    4096u
#define HUGE		    (2ull << 20)
/* COMPOUND_HEAD and THP */
#define KPF_HUGE_HEAD (1ull << 15 | 1ull << 22)

struct walker {
	struct picture *p;
	int pagemap, kflags, kcount;
	int no_frames; /* PFNs are hidden: presence is known, how often a page is mapped is not */
	int no_scan; /* PAGEMAP_SCAN is not there: read every entry */
	u32 racing; /* MP_PAGE_RACING while it is unsure which pages are huge */
	u64 ksm; /* the bit of kpageflags that says KSM, 0 when it says so of any page */
	struct vma vma;
	struct nodes nodes;
	u64 entries[BLOCK_PAGES];
	u64 anon_swap;
};

/* State of one page from its pagemap entry. 0: nothing there. */
static u32 decode(const struct vma *v, u64 e, u64 kflags, u64 ksm)
{
	u32 file = e & PM_BIT_FILE ? MP_PAGE_FILE : 0, type = e & 31;

	if (v->flags & MP_VMA_HUGETLB)
		return e & PM_BIT_PRESENT ? MP_PAGE_HUGETLB : 0;
	if (e & PM_BIT_PRESENT) {
		if (v->flags & MP_VMA_PFNMAP)
			return 0;
		if (kflags & (1ull << KPF_ZERO_PAGE))
			return MP_PAGE_ZERO;
		if (kflags & (1ull << KPF_NOPAGE))
			return 0;
		return MP_PAGE_RESIDENT | file | (kflags & ksm ? MP_PAGE_KSM : 0);
	}
	if (!(e & PM_BIT_SWAP) || e & PM_BIT_GUARD || type == TYPE_MARKER)
		return 0;
	if (type < FIRST_NON_SWAP_TYPE)
		return MP_PAGE_SWAPPED;
	/* Migration and device entries are Rss; hwpoison (the first behind swap) is not, but no
	 * test here has met one: the residual would show it. */
	return MP_PAGE_RESIDENT | MP_PAGE_MIGRATING | file;
}

/* One word of /proc/kpage* for n consecutive PFNs. */
static int kpage_read(int fd, u64 pfn, u64 *ret, u32 n)
{
	ssize_t len = pread(fd, ret, n * 8ul, (off_t)(pfn * 8));

	return len == (ssize_t)(n * 8ul) ? 0 : -EIO;
}

/* Of a page without a known frame: PAGEMAP_SCAN told the zero page apart. */
static u32 decode_blind(const struct walker *k, u64 e, int zero)
{
	u32 flags = decode(&k->vma, e, 0, 0);

	return flags & MP_PAGE_RESIDENT && zero ? MP_PAGE_ZERO : flags;
}

static int decode_block(struct walker *k, u64 addr, u32 n, int huge, int zero)
{
	u64 kf[512], kc[512];
	u8 first[512] = {0};
	u32 i = 0, j, len;
	int err = 0;

	while (i < n && !err) {
		u64 e = k->entries[i], pfn = e & PM_PFN_MASK;

		if (!(e & PM_BIT_PRESENT) || !pfn) {
			u32 flags = decode_blind(k, e, zero);

			if (flags & MP_PAGE_RESIDENT && huge)
				flags |= MP_PAGE_THP;
			if (flags)
				err = picture_run(k->p, addr + i * MP_PAGE_SIZE, 1, flags,
						  !k->no_frames, ~0u, 0);
			if (flags & MP_PAGE_SWAPPED)
				k->anon_swap += MP_PAGE_SIZE;
			i++;
			continue;
		}
		for (len = 1; i + len < n && len < 512; len++)
			if (!(k->entries[i + len] & PM_BIT_PRESENT) ||
			    (k->entries[i + len] & PM_PFN_MASK) != pfn + len)
				break;
		/* A PFN without a struct page (device memory) reads as nothing: no flags known. */
		if (kpage_read(k->kflags, pfn, kf, len))
			memset(kf, 0xff, sizeof(kf));
		if (kpage_read(k->kcount, pfn, kc, len))
			memset(kc, 0, sizeof(kc));
		if (k->p->env->charged)
			err = pagecg_mark(k->p->env->charged, pfn, len, first);
		for (j = 0; j < len && !err; j++) {
			u32 flags = decode(&k->vma, k->entries[i + j], kf[j], k->ksm);

			if (flags & MP_PAGE_RESIDENT && huge)
				flags |= MP_PAGE_THP;
			if (flags & MP_PAGE_RESIDENT && first[j])
				flags |= MP_PAGE_CHARGED;
			if (flags)
				flags |= k->racing;
			if (flags)
				err = picture_run(
					k->p, addr + (i + j) * MP_PAGE_SIZE, 1, flags,
					kc[j] && !(flags & MP_PAGE_HUGETLB) ? (u32)kc[j] : 1,
					flags & MP_PAGE_ZERO ? ~0u : nodes_find(&k->nodes, pfn + j),
					pfn + j);
		}
		i += len;
	}
	return err;
}

static int walk_range(struct walker *k, u64 start, u64 end, int huge, int zero)
{
	while (start < end) {
		u64 left = (end - start) / MP_PAGE_SIZE;
		u32 n = left < BLOCK_PAGES ? (u32)left : BLOCK_PAGES;
		ssize_t len =
			pread(k->pagemap, k->entries, n * 8ul, (off_t)(start / MP_PAGE_SIZE * 8));
		int err;

		if (len <= 0) /* 0: the process let its mm go */
			return len ? -errno : -ESRCH;
		n = (u32)(len / 8);
		err = decode_block(k, start, n, huge, zero);
		if (err)
			return err;
		start += n * MP_PAGE_SIZE;
	}
	return 0;
}

/* Could [at, at + HUGE) be mapped by one entry? Then it is one huge page, whole and in order. */
static int may_be_huge(struct walker *k, u64 at)
{
	u64 first, flags;
	u32 i;

	if (pread(k->pagemap, k->entries, HUGE / MP_PAGE_SIZE * 8,
		  (off_t)(at / MP_PAGE_SIZE * 8)) != HUGE / MP_PAGE_SIZE * 8)
		return 0;
	first = k->entries[0] & PM_PFN_MASK;
	for (i = 0; i < HUGE / MP_PAGE_SIZE; i++)
		if (!(k->entries[i] & PM_BIT_PRESENT) || (k->entries[i] & PM_PFN_MASK) != first + i)
			return 0;
	return first && !kpage_read(k->kflags, first, &flags, 1) &&
	       (flags & KPF_HUGE_HEAD) == KPF_HUGE_HEAD && !(flags & 1ull << KPF_ZERO_PAGE);
}

/* Without PAGEMAP_SCAN smaps knows how many bytes of a VMA are mapped by huge entries, and the
 * frames which those can be. Where the two differ no page of them is called exact: a huge page may
 * be mapped by small entries, and smaps of Linux 6.1 leaves out those without access, for good or
 * until NUMA balancing's next fault. */
static int walk_vma_huge(struct walker *k, u64 at, u64 to)
{
	u64 block, most = (to - at) / HUGE + 1, n = 0, i;
	u64 *blocks = calloc(most, sizeof(*blocks));
	int err = blocks ? 0 : -ENOMEM;

	for (block = (at + HUGE - 1) & ~(HUGE - 1); !err && block + HUGE <= to; block += HUGE)
		if (may_be_huge(k, block))
			blocks[n++] = block;
	for (i = 0; !err && i < n; i++) {
		err = walk_range(k, at, blocks[i], 0, 0);
		k->racing = n * HUGE > k->vma.thp ? MP_PAGE_RACING : 0;
		if (!err)
			err = walk_range(k, blocks[i], blocks[i] + HUGE, i < k->vma.thp / HUGE, 0);
		k->racing = 0;
		at = blocks[i] + HUGE;
	}
	if (!err)
		err = walk_range(k, at, to, 0, 0);
	free(blocks);
	return err;
}

/* Only ranges that hold something: 64 GiB of untouched reservation costs one call. */
static int walk_vma(struct walker *k)
{
	struct pm_region regs[256];
	u64 at = k->vma.start > k->p->from ? k->vma.start : k->p->from;
	u64 to = k->vma.end < k->p->to ? k->vma.end : k->p->to;
	int err, n, i;

	if (k->vma.flags & MP_VMA_GATE)
		return 0;
	while (!k->no_scan && at < to) {
		struct pm_scan arg = {
			.size = sizeof(arg),
			.start = at,
			.end = to,
			.vec = (u64)(unsigned long)regs,
			.vec_len = 256,
			.category_anyof_mask = PM_PRESENT | PM_SWAPPED,
			.return_mask = PM_PRESENT | PM_SWAPPED | PM_HUGE | PM_ZERO,
		};

		n = ioctl(k->pagemap, PM_SCAN, &arg);
		if (n < 0) {
			k->no_scan = errno == ENOTTY || errno == EINVAL;
			if (!k->no_scan)
				return -errno;
			break;
		}
		for (i = 0; i < n; i++) {
			err = walk_range(k, regs[i].start, regs[i].end,
					 !!(regs[i].categories & PM_HUGE),
					 !!(regs[i].categories & PM_ZERO));
			if (err)
				return err;
		}
		if (arg.walk_end <= at)
			break;
		at = arg.walk_end;
	}
	if (!k->no_scan || at >= to)
		return 0;
	return k->no_frames ? walk_range(k, at, to, 0, 0) : walk_vma_huge(k, at, to);
}

static u32 vm_flag(const char *two)
{
	static const struct {
		char name[3];
		u32 flag;
	} map[] = {{"sh", MP_VMA_SHARED}, {"ht", MP_VMA_HUGETLB}, {"pf", MP_VMA_PFNMAP},
		   {"io", MP_VMA_PFNMAP}, {"gd", MP_VMA_STACK},	  {"nr", MP_VMA_NORESERVE},
		   {"nh", MP_VMA_NOHUGE}};
	unsigned int i;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (!strncmp(two, map[i].name, 2))
			return map[i].flag;
	return 0;
}

static int finish_vma(struct walker *k)
{
	const struct vma *v = &k->vma;
	s64 at;
	int err;

	if (v->end <= k->p->from || v->start >= k->p->to)
		return 0;
	at = picture_vma(k->p, v);
	if (at < 0)
		return (int)at;
	k->anon_swap = 0;
	err = walk_vma(k);
	/* What smaps calls Swap and no page table shows lies in the object (shmem). */
	if (!err && v->swap > k->anon_swap)
		picture_object_swap(k->p, at, v->swap - k->anon_swap);
	return err;
}

static int walk_smaps(struct walker *k, FILE *f)
{
	unsigned long long v;
	char *line = NULL;
	size_t room = 0;
	struct vma next;
	int err = 0;

	while (!err && getline(&line, &room, f) > 0) {
		if (vma_line(k->p, line, &next)) {
			err = finish_vma(k);
			k->vma = next;
		} else if (sscanf(line, "Swap: %llu kB", &v) == 1) {
			k->vma.swap = v * 1024;
		} else if (sscanf(line, "AnonHugePages: %llu kB", &v) == 1 ||
			   sscanf(line, "ShmemPmdMapped: %llu kB", &v) == 1 ||
			   sscanf(line, "FilePmdMapped: %llu kB", &v) == 1) {
			k->vma.thp += v * 1024;
		} else if (!strncmp(line, "VmFlags:", 8)) {
			char *p = line + 8;

			for (; p[0] && p[1] && p[2]; p += 3)
				k->vma.flags |= vm_flag(p + 1);
		}
	}
	free(line);
	return err ? err : finish_vma(k);
}

/* Some kernels (seen in 6.12 and 6.18) say KSM of every anonymous page; then they do of one that
 * was just written, which nothing can have merged yet. */
static u64 ksm_bit(void)
{
	volatile u8 *page = mmap(NULL, MP_PAGE_SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u64 flags;

	if (page == MAP_FAILED)
		return 0;
	page[0] = 1;
	flags = kpage_flags(own_entry((void *)page) & PM_PFN_MASK);
	munmap((void *)page, MP_PAGE_SIZE);
	return ~flags & 1ull << KPF_KSM;
}

static int kpage_open(struct walker *k, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)tid);
	k->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (k->pagemap < 0)
		return errno == ENOENT ? -ESRCH : proc_error();
	if (privilege_missing(NEED_ADMIN)) {
		k->no_frames = 1;
		return 0;
	}
	k->kflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	k->kcount = open("/proc/kpagecount", O_RDONLY | O_CLOEXEC);
	k->no_frames = k->kflags < 0 || k->kcount < 0;
	if (!k->no_frames)
		k->ksm = ksm_bit();
	return 0;
}

static void kpage_close(struct walker *k)
{
	if (k->pagemap >= 0)
		close(k->pagemap);
	if (k->kflags >= 0)
		close(k->kflags);
	if (k->kcount >= 0)
		close(k->kcount);
}

int walk_by_pagemap(struct picture *p, pid_t tid)
{
	struct walker *k = calloc(1, sizeof(*k));
	FILE *f = NULL;
	int err;

	if (!k)
		return -ENOMEM;
	k->p = p;
	k->pagemap = k->kflags = k->kcount = -1;
	nodes_read("/proc/zoneinfo", &k->nodes);
	err = kpage_open(k, tid);
	if (!err) {
		f = proc_open(tid, "smaps");
		err = f ? picture_chunk(p, p->env->seq(p->env->ctx), p->from) : proc_error();
	}
	if (!err)
		err = walk_smaps(k, f);
	if (!err)
		err = picture_flush(p);
	if (!err)
		picture_chunk_end(p, p->env->seq(p->env->ctx), p->to, 0);
	if (f)
		fclose(f);
	kpage_close(k);
	free(k);
	return err;
}
