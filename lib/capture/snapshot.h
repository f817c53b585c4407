/* SPDX-License-Identifier: GPL-2.0-only
 * One picture of an address space: its VMAs and the state of every page, by the best provider
 * there is, with the kernel's own totals before and after (smaps_rollup, status: another interface
 * than the one that is summed). Never stops the target. */
#ifndef MP_CAPTURE_SNAPSHOT_H
#define MP_CAPTURE_SNAPSHOT_H

#include <sys/types.h>
#include "lib/trace/trace.h"

struct snapshot;
struct pagewalk;
struct pagecg;

/* What a picture needs of its recording. */
struct snapshot_env {
	struct trace_writer *w; /* strings are interned here */
	struct pagewalk *walker; /* NULL: pagemap */
	u64 (*seq)(void *ctx); /* number of the recording's latest event */
	struct pagecg *charged; /* pages are asked whether they are charged to a cgroup; or NULL */
	int by_counters; /* compare with the counters of status: smaps_rollup walks every page again
			  */
	int accessed; /* with the walker: say which pages were accessed */
	int (*walked)(void *ctx, pid_t pid, u32 space); /* right after the pages were, or NULL */
	u64 (*map_ops)(void *ctx, u32 space); /* mapping calls of a space so far */
	void *ctx;
};

/* A thread of pid that still has its memory: /proc/PID shows nothing once the leader has exited.
 * Returns its tid, -ESRCH when there is no such process, 0 when no thread has memory (kernel
 * thread, zombie). */
pid_t snapshot_thread(pid_t pid);

/* Take a picture of pid; its records stay in memory until written. -ESRCH when the process is gone
 * or a kernel thread, -EPERM without PFNs (CAP_SYS_ADMIN), -EACCES when the kernel lets nobody look
 * into it. */
int snapshot_take(const struct snapshot_env *env, pid_t pid, u32 space, u32 walk_id,
		  struct snapshot **ret_s);
u64 snapshot_cost_ns(const struct snapshot *s);
u64 snapshot_walk_ns(const struct snapshot *s); /* CPU time of reading the pages, once */
u64 snapshot_hold_ns(const struct snapshot *s); /* longest hold of the mmap lock; 0: pagemap */
u64 snapshot_handed(const struct snapshot *s); /* accessed pages that another had reset */
u64 snapshot_time_ns(const struct snapshot *s);
u64 snapshot_resident(const struct snapshot *s); /* bytes */
int snapshot_write(const struct snapshot *s, struct trace_writer *w);
void snapshot_free(struct snapshot **s);

#endif
