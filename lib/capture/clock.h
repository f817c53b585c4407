/* SPDX-License-Identifier: GPL-2.0-only
 * The clock of every record: the one that bpf_ktime_get_ns() reads. */
#ifndef MP_CAPTURE_CLOCK_H
#define MP_CAPTURE_CLOCK_H

#include <time.h>
#include "bpf/shared/types.h"

static inline u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* Time this thread ran. */
static inline u64 thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

#endif
