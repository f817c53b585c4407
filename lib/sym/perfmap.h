/* SPDX-License-Identifier: GPL-2.0-only
 * perf-PID.map: what a runtime calls the code it has made, "START SIZE name" a line. Anybody's
 * text: a line that makes no sense is passed over. */
#ifndef MP_SYM_PERFMAP_H
#define MP_SYM_PERFMAP_H

#include "bpf/shared/types.h"

struct perfmap;

/* 0, -ENOMEM, or -errno of reading. fd stays the caller's. */
int perfmap_read(int fd, struct perfmap **ret_m);
void perfmap_free(struct perfmap **m);
/* Whose code this is, NULL: nobody's. Of entries that overlap, the one that was written last: code
 * is moved, and its place used again. Lives as long as the map. */
const char *perfmap_find(const struct perfmap *m, u64 addr);

#endif
