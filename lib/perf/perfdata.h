/* SPDX-License-Identifier: GPL-2.0-only
 * The samples of a perf.data file: of perf record and perf mem record, in a file or as it comes
 * through a pipe, compressed or not, in this machine's byte order. Such files come from anywhere:
 * every length is checked, and what does not fit is an error. */
#ifndef MP_PERF_PERFDATA_H
#define MP_PERF_PERFDATA_H

#include <stddef.h>
#include "bpf/shared/types.h"

enum perf_has {
	PERF_HAS_ADDR = 1,
	PERF_HAS_WEIGHT = 2,
	PERF_HAS_DATA_SRC = 4,
	PERF_HAS_PHYS_ADDR = 8,
	PERF_HAS_TIME = 16,
};

/* What a sample has not is 0, and no bit of has. */
struct perf_sample {
	u64 time_ns; /* of the file's clock */
	u64 ip, addr, weight, data_src, phys_addr;
	u32 pid, tid;
	u32 has;
	u32 reserved0;
};

struct perf_info {
	u64 samples, lost, throttled; /* lost and throttled by the kernel's own count */
	int monotonic; /* the clock is CLOCK_MONOTONIC, for every event */
};

/* Each sample of the file in its order; each stops it by returning non-zero. Closes fd. 0, what
 * each returned, or -EBADMSG, -EPROTONOSUPPORT, -ENOMEM with a line of reason in msg. */
int perfdata_read(int fd, int (*each)(void *ctx, const struct perf_sample *s), void *ctx,
		  struct perf_info *ret_info, char *msg, size_t msg_len);

#endif
