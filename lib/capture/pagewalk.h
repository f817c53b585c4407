/* SPDX-License-Identifier: GPL-2.0-only
 * The BPF page-table walk: calibrated on memprov's own pages, and trusted only after it has given
 * the same picture of prepared pages as pagemap does. */
#ifndef MP_CAPTURE_PAGEWALK_H
#define MP_CAPTURE_PAGEWALK_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct pagewalk;

/* Load, calibrate, prove. 0, or -errno with one line of reason in msg. Takes a few milliseconds. */
int pagewalk_open(char *msg, size_t msg_len, struct pagewalk **ret_w);
/* Walks memprov's own space with 256 MiB of small pages in it; the longest time under its
 * mmap lock, 0 on failure. The iterator gives the lock up between VMAs when somebody waits. */
u64 pagewalk_try_ns(struct pagewalk *w);
/* What it found out about frames: where struct page of the first lies, and their bits in an entry.
 */
void pagewalk_frames(const struct pagewalk *w, u64 *ret_vmemmap, u64 *ret_mask);
void pagewalk_close(struct pagewalk **w);

#endif
