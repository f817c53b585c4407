/* SPDX-License-Identifier: GPL-2.0-only
 * One picture of an address space: its VMAs (smaps) and the state of every page (pagemap,
 * kpageflags, kpagecount), with the kernel's own totals before and after (smaps_rollup, status:
 * another interface than the one that is summed). Never stops the target. */
#ifndef MP_CAPTURE_SNAPSHOT_H
#define MP_CAPTURE_SNAPSHOT_H

#include <sys/types.h>
#include "lib/trace/trace.h"

struct snapshot;
struct pagecg;

/* A thread of pid that still has its memory: /proc/PID shows nothing once the leader has exited.
 * Returns its tid, -ESRCH when there is no such process, 0 when no thread has memory (kernel
 * thread, zombie). */
pid_t snapshot_thread(pid_t pid);

typedef u64 (*snapshot_seq_fn)(void *ctx); /* draws the current sequence number */

/* Take a picture of pid. charged, if not NULL, says which pages are charged to the recorded cgroup.
 * Strings are interned in w, records stay in memory until written. -ESRCH
 * when the process is gone or a kernel thread, -EPERM without PFNs (CAP_SYS_ADMIN). */
int snapshot_take(pid_t pid, u32 space, u32 walk_id, struct trace_writer *w, snapshot_seq_fn seq,
		  void *seq_ctx, struct pagecg *charged, struct snapshot **ret_s);
u64 snapshot_cost_ns(const struct snapshot *s);
u64 snapshot_time_ns(const struct snapshot *s);
u64 snapshot_resident(const struct snapshot *s); /* bytes */
int snapshot_write(const struct snapshot *s, struct trace_writer *w);
void snapshot_free(struct snapshot **s);

#endif
