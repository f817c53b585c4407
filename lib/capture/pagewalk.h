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
void pagewalk_close(struct pagewalk **w);

#endif
