/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bpf/shared/event.h"
#include "lib/capture/clock.h"
#include "lib/capture/pagecg.h"

#define CHUNK	      4096u /* PFNs a read */
#define SEARCH_MAX_NS 30000000000ull

/* include/uapi/linux/kernel-page-flags.h */
#define KPF_UPTODATE	(1ull << 3)
#define KPF_LRU		(1ull << 5)
#define KPF_ANON	(1ull << 12)
#define KPF_SWAPBACKED	(1ull << 14)
#define KPF_HUGE	(1ull << 17)
#define KPF_UNEVICTABLE (1ull << 18)
#define KPF_PGTABLE	(1ull << 26)

struct pagecg {
	int kgroup, kflags, kcount;
	u64 *inos; /* sorted */
	size_t nr_inos;
	u8 *shown; /* a bit for each PFN below nr_pfns */
	u64 nr_pfns;
};

const char *const pagecg_names[PAGECG_KINDS] = {
	[PAGECG_ANON_MAPPED] = "anon_mapped",
	[PAGECG_SHMEM_MAPPED] = "shmem_mapped",
	[PAGECG_FILE_MAPPED] = "file_mapped",
	[PAGECG_ANON] = "anon",
	[PAGECG_SHMEM] = "shmem",
	[PAGECG_FILE] = "file",
	[PAGECG_HUGETLB] = "hugetlb",
	[PAGECG_PAGETABLES] = "pagetables",
	[PAGECG_KERNEL] = "kernel",
};

int pagecg_new(struct pagecg **ret_p)
{
	struct pagecg *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->kgroup = open("/proc/kpagecgroup", O_RDONLY | O_CLOEXEC);
	err = p->kgroup < 0 ? -errno : 0;
	p->kflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	p->kcount = open("/proc/kpagecount", O_RDONLY | O_CLOEXEC);
	if (!err && (p->kflags < 0 || p->kcount < 0))
		err = -errno;
	if (err)
		pagecg_free(&p);
	else
		*ret_p = p;
	return err;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

int pagecg_set(struct pagecg *p, const u64 *inos, size_t n)
{
	u64 *set = malloc((n ? n : 1) * sizeof(*set));

	if (!set)
		return -ENOMEM;
	memcpy(set, inos, n * sizeof(*set));
	qsort(set, n, sizeof(*set), by_value);
	free(p->inos);
	p->inos = set;
	p->nr_inos = n;
	return 0;
}

static int is_ours(const struct pagecg *p, u64 ino)
{
	return ino && bsearch(&ino, p->inos, p->nr_inos, sizeof(ino), by_value) != NULL;
}

void pagecg_begin(struct pagecg *p)
{
	memset(p->shown, 0, (size_t)(p->nr_pfns / 8));
}

static int shown(const struct pagecg *p, u64 pfn)
{
	return pfn < p->nr_pfns && p->shown[pfn / 8] & 1 << pfn % 8;
}

static int show(struct pagecg *p, u64 pfn)
{
	u64 n = p->nr_pfns ? p->nr_pfns : 1 << 20;
	u8 *bits;

	if (pfn >= p->nr_pfns) {
		while (n <= pfn)
			n *= 2;
		bits = realloc(p->shown, (size_t)(n / 8));
		if (!bits)
			return -ENOMEM;
		memset(bits + p->nr_pfns / 8, 0, (size_t)((n - p->nr_pfns) / 8));
		p->shown = bits;
		p->nr_pfns = n;
	}
	p->shown[pfn / 8] |= (u8)(1 << pfn % 8);
	return 0;
}

/* Words of one of the kpage files. Returns how many, 0 behind the last PFN. */
static ssize_t words(int fd, u64 pfn, u64 *ret, u32 n)
{
	ssize_t len = pread(fd, ret, n * 8ul, (off_t)(pfn * 8));

	return len < 0 ? -errno : len / 8;
}

int pagecg_mark(struct pagecg *p, u64 pfn, u32 n, u8 *ret_first)
{
	u64 ino[512];
	ssize_t got = words(p->kgroup, pfn, ino, n);
	u32 i;

	if (got < 0)
		return (int)got;
	for (i = 0; i < n; i++) {
		ret_first[i] = i < (u32)got && !shown(p, pfn + i) && is_ours(p, ino[i]);
		if (show(p, pfn + i))
			return -ENOMEM;
	}
	return 0;
}

static enum pagecg_kind kind_of(u64 flags, u64 mapcount)
{
	if (flags & KPF_HUGE)
		return PAGECG_HUGETLB;
	if (flags & KPF_PGTABLE)
		return PAGECG_PAGETABLES;
	if (flags & KPF_ANON)
		return mapcount ? PAGECG_ANON_MAPPED : PAGECG_ANON;
	/* A page on its way to the LRU lists is not on them yet; the kernel's own pages never are.
	 */
	if (!(flags & (KPF_LRU | KPF_UNEVICTABLE | KPF_SWAPBACKED | KPF_UPTODATE)))
		return PAGECG_KERNEL;
	if (flags & KPF_SWAPBACKED)
		return mapcount ? PAGECG_SHMEM_MAPPED : PAGECG_SHMEM;
	return mapcount ? PAGECG_FILE_MAPPED : PAGECG_FILE;
}

/* A stretch of charged pages: what each is. */
static int count(struct pagecg *p, u64 pfn, u32 n, u64 *bytes)
{
	u64 flags[CHUNK], counts[CHUNK];
	u32 i;

	if (words(p->kflags, pfn, flags, n) != (ssize_t)n ||
	    words(p->kcount, pfn, counts, n) != (ssize_t)n)
		return -EIO;
	for (i = 0; i < n; i++)
		if (!shown(p, pfn + i))
			bytes[kind_of(flags[i], counts[i])] += MP_PAGE_SIZE;
	return 0;
}

int pagecg_search(struct pagecg *p, u64 *ret_bytes)
{
	u64 ino[CHUNK], bytes[PAGECG_KINDS] = {0}, pfn, began = now_ns();
	ssize_t got = 1;
	int err = 0;
	u32 i, from;

	for (pfn = 0; !err && got > 0; pfn += (u64)got) {
		got = words(p->kgroup, pfn, ino, CHUNK);
		for (i = 0; !err && got > 0 && i < (u32)got; i++) {
			if (!is_ours(p, ino[i]))
				continue;
			for (from = i; i < (u32)got && is_ours(p, ino[i]); i++)
				;
			err = count(p, pfn + from, i - from, bytes);
		}
		if (!err && now_ns() - began > SEARCH_MAX_NS)
			err = -ETIME;
		if (got < 0)
			return (int)got;
	}
	if (!err)
		memcpy(ret_bytes, bytes, sizeof(bytes));
	return err;
}

void pagecg_free(struct pagecg **p)
{
	if (!p || !*p)
		return;
	if ((*p)->kgroup >= 0)
		close((*p)->kgroup);
	if ((*p)->kflags >= 0)
		close((*p)->kflags);
	if ((*p)->kcount >= 0)
		close((*p)->kcount);
	free((*p)->inos);
	free((*p)->shown);
	free(*p);
	*p = NULL;
}
