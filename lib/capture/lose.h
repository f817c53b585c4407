/* SPDX-License-Identifier: GPL-2.0-only
 * MEMPROV_LOSE, for tests: which events a recording loses on purpose. A list of topology=PERCENT%,
 * detail=PERCENT%, burst=N (neighbours that go together, rounded up to a power of two), seed=N. */
#ifndef MP_CAPTURE_LOSE_H
#define MP_CAPTURE_LOSE_H

#include "bpf/shared/types.h"

struct lose {
	u32 topology, detail; /* parts of 65536 of a ring's events */
	u32 burst; /* log2 of how many neighbours go together */
	u32 seed;
};

/* text NULL: nothing is lost. 0 or -EINVAL. */
int lose_parse(const char *text, struct lose *ret_lose);

#endif
