/* SPDX-License-Identifier: GPL-2.0-only
 * Pictures of all targets: taken in rounds, by the best walk there is, the latest of each space
 * kept until it is written. */
#ifndef MP_CAPTURE_PICTURES_H
#define MP_CAPTURE_PICTURES_H

#include <stddef.h>
#include <sys/types.h>
#include "lib/trace/trace.h"

struct accessed;
struct group;
struct pictures;
struct session;

struct pictures_opts {
	struct trace_writer *w;
	struct session *s;
	struct group *group; /* NULL: no cgroup is recorded */
	int live; /* compared with counters only */
	struct accessed *accessed; /* pictures say which pages were; NULL: they do not */
};

/* Chooses the walk. 0 or -ENOMEM. */
int pictures_new(const struct pictures_opts *o, struct pictures **ret_p);
/* The page tables are walked by BPF; 0: pagemap, and no_walker says why. */
int pictures_by_walk(const struct pictures *p);
const char *pictures_no_walker(const struct pictures *p);
/* As pagewalk_frames; 0, or why they are not known. */
const char *pictures_frames(const struct pictures *p, u64 *ret_vmemmap, u64 *ret_mask);
/* A picture of every target now. each: called after each, or NULL. 0 or -errno. */
int pictures_take(struct pictures *p, void (*each)(void *ctx), void *ctx);
/* In the next round accessed bits are cleared behind each picture. Write it before the next. */
void pictures_clear(struct pictures *p);
/* A target whose accessed bits another memprov reads, 0 none: they are left alone. */
pid_t pictures_not_cleared(const struct pictures *p);
/* Those that are not written yet, in the order they were taken, so that no two of them interleave
 * for the reader. */
int pictures_write(struct pictures *p);
/* What ended in the meantime is not kept in mind. */
void pictures_forget(struct pictures *p);
unsigned int pictures_spaces(const struct pictures *p); /* that have had one */
/* Pictures that the kernel refused: protected processes; *ret_first is one of them, when any. */
unsigned int pictures_refused(const struct pictures *p, pid_t *ret_first);
/* Of the latest round. */
u64 pictures_cost_ns(const struct pictures *p);
u64 pictures_walk_ns(const struct pictures *p); /* CPU time of reading the pages, once */
u64 pictures_hold_ns(const struct pictures *p); /* longest hold of the mmap lock; 0: pagemap */
u64 pictures_resident(const struct pictures *p); /* bytes */
void pictures_free(struct pictures **p);

#endif
