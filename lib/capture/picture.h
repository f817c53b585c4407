/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to lib/capture: a picture being put together. Providers (pagewalk.c, pagemap.c) call
 * picture_vma and picture_run; runs of equal pages are folded and frame numbers hidden here, so
 * that all providers leave the same records. */
#ifndef MP_CAPTURE_PICTURE_H
#define MP_CAPTURE_PICTURE_H

#include <stdio.h>
#include <sys/types.h>
#include "lib/capture/snapshot.h"

struct picture {
	u8 *recs;
	size_t len, cap;
	const struct snapshot_env *env;
	u32 space, walk;
	u64 from, to; /* only what lies in [from, to) is walked */
	u64 time_ns, seq_now, resident, walk_ns, hold_ns;
	u64 handed; /* accessed pages whose bit somebody else had cleared */
	u64 chunk_at; /* offset of the open CHUNK */
	struct {
		u64 start, pfn;
		u32 pages, flags, mapcount, node;
	} run; /* being grown; pages 0: none */
};

/* One line of maps or smaps. */
struct vma {
	u64 start, end, pgoff, ino, swap, thp;
	u32 dev, name, flags;
};

int picture_put(struct picture *p, u16 type, const void *body, size_t len);
/* Everything until the next chunk was read between seq_begin and the seq_end given on closing. */
int picture_chunk(struct picture *p, u64 seq_begin, u64 start);
void picture_chunk_end(struct picture *p, u64 seq_end, u64 end, u32 tries);
/* Returns the offset of the record, for picture_object_swap, or -errno. */
s64 picture_vma(struct picture *p, const struct vma *v);
void picture_object_swap(struct picture *p, s64 at, u64 bytes);
/* pages equal pages (MP_PAGE_*); pfn of the first one, 0 unknown; node ~0 unknown. */
int picture_run(struct picture *p, u64 start, u32 pages, u32 flags, u32 mapcount, u32 node,
		u64 pfn);
int picture_flush(struct picture *p);

/* /proc/PID/FILE for reading, or NULL; then proc_error() is -EACCES (not ours to look at) or
 * -ESRCH.
 */
FILE *proc_open(pid_t pid, const char *file);
int proc_error(void);
/* Parses the header line of a VMA; 1 when it was one. The name is interned in the trace. */
int vma_line(struct picture *p, char *line, struct vma *ret_v);

/* Providers. 0 or -errno. */
struct pagewalk;
int walk_by_tables(struct picture *p, pid_t tid);
int walk_by_pagemap(struct picture *p, pid_t tid);

/* kpageflags of one frame; ~0 when it has none. */
u64 kpage_flags(u64 pfn);
/* pagemap's entry of one of our own pages; 0 when it cannot be read. */
u64 own_entry(const void *addr);
#define KPF_NOPAGE    20
#define KPF_KSM	      21
#define KPF_ZERO_PAGE 24

#endif
