/* SPDX-License-Identifier: GPL-2.0-only
 * Which physical pages are charged to a set of cgroups (/proc/kpagecgroup names the group of every
 * PFN). Pictures mark the pages they show, each once; a search through all of memory then finds
 * what the groups are charged and no picture shows. */
#ifndef MP_CAPTURE_PAGECG_H
#define MP_CAPTURE_PAGECG_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct pagecg;

/* Kinds of charged pages that no picture shows. *_mapped: some page table holds them. */
enum pagecg_kind {
	PAGECG_ANON_MAPPED,
	PAGECG_SHMEM_MAPPED,
	PAGECG_FILE_MAPPED,
	PAGECG_ANON, /* swap cache */
	PAGECG_SHMEM,
	PAGECG_FILE,
	PAGECG_HUGETLB,
	PAGECG_PAGETABLES,
	PAGECG_KERNEL, /* charged page by page: pipes, stacks, vmalloc; slab pages name no group */
	PAGECG_KINDS
};
extern const char *const pagecg_names[PAGECG_KINDS];

/* -ENOENT: the kernel has no kpagecgroup; -EPERM, -EACCES: not for us. */
int pagecg_new(struct pagecg **ret_p);
/* The groups, by inode. Keeps nothing of inos. */
int pagecg_set(struct pagecg *p, const u64 *inos, size_t n);
/* A new round of pictures: nothing has been shown yet. */
void pagecg_begin(struct pagecg *p);
/* n PFNs in a row are in a picture. ret_first[i] 1: charged to the groups and not shown before.
 * n is at most 512. */
int pagecg_mark(struct pagecg *p, u64 pfn, u32 n, u8 *ret_first);
/* Bytes by kind of what is charged and was not shown. Takes about 25 ms per GiB of the machine.
 * -ETIME: this machine is too large to search in half a minute. */
int pagecg_search(struct pagecg *p, u64 *ret_bytes);
void pagecg_free(struct pagecg **p);

#endif
