/* SPDX-License-Identifier: GPL-2.0-only
 * The BPF object of a recording, loaded and attached, in the build that this kernel takes. */
#ifndef MP_CAPTURE_OBJECT_H
#define MP_CAPTURE_OBJECT_H

#include <stddef.h>
#include "bpf/shared/types.h"

struct life;
struct memprov_bpf;

struct object_opts {
	int follow; /* forks */
	u64 ring_bytes; /* of the detail ring, 0: as built */
};

/* Neither loaded nor attached: its variables keep the numbers all the same. NULL: errno. */
struct memprov_bpf *object_idle(void);
/* 0, -EINVAL with a line in msg (MEMPROV_LOSE is wrong), or what loading or attaching returned. */
int object_load(const struct object_opts *o, char *msg, size_t msg_len,
		struct memprov_bpf **ret_obj, struct life **ret_life);

#endif
