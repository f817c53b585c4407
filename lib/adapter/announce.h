/* SPDX-License-Identifier: GPL-2.0-only
 * What a recorder may listen to: empty functions, in whose first byte a probe can be put. Each has
 * a note (.note.stapsdt) by which any tracer finds it. */
#ifndef MP_ADAPTER_ANNOUNCE_H
#define MP_ADAPTER_ANNOUNCE_H

#include "bpf/shared/types.h"

/* otel_memory:alloc. weighted: bytes that it stands for. */
void announce_alloc(const void *p, u64 size, u64 weighted);
/* otel_memory:free, before it is given back. */
void announce_free(const void *p);
/* memprov_adapter:sampler. A process, or a program in it, begins: one of interval bytes is sampled.
 */
void announce_sampler(u64 interval);
/* memprov_adapter:lost. An allocation cannot be followed any more. */
void announce_lost(void);

#endif
