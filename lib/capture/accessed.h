/* SPDX-License-Identifier: GPL-2.0-only
 * Accessed bits of address spaces: clears them, proves that every processor will set them anew, and
 * knows what else may have changed them meanwhile. Only where it is asked for by name: reclaim
 * takes a page whose bit is gone for one that nobody needs. */
#ifndef MP_CAPTURE_ACCESSED_H
#define MP_CAPTURE_ACCESSED_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/event.h"

struct accessed;

/* Finds the flush. 0, or -errno with one line of reason in msg. */
int accessed_open(char *msg, size_t msg_len, struct accessed **ret_a);
/* Why no flush can be proven here, so that pages may have been accessed unseen; NULL: it can. */
const char *accessed_unproven(const struct accessed *a);
/* What will make them bounds on this machine as it is now, in words; 0: nothing, and buf is "". */
int accessed_limits(const struct accessed *a, char *buf, size_t len);
/* Clear those of pid. Fills in took and doubts. -EBUSY: another memprov reads this process's;
 * -ESRCH when it is gone, -EACCES when it is not ours to change. */
int accessed_clear(struct accessed *a, pid_t pid, struct mp_ev_clear *ret_c);
/* MP_DOUBT_* of the machine since the first clear. */
u32 accessed_doubts(const struct accessed *a);
/* CPU time of the longest clear of one space: on a busy machine it may take longer. */
u64 accessed_cpu_ns(const struct accessed *a);
void accessed_free(struct accessed **a);

#endif
