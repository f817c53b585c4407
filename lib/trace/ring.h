/* SPDX-License-Identifier: GPL-2.0-only
 * The last while of a recording, in memory: what a flight recorder writes when it is asked to. It
 * takes a writer's records (trace_writer_sink) and keeps within its size by letting go of the
 * oldest faults and other page events first, of the oldest mapping calls and allocations when those
 * are all gone; what was let go is a loss when it is written, by space and class. Facts, names and
 * processes stay. Of pictures it keeps what spans a minute, and the latest. */
#ifndef MP_TRACE_RING_H
#define MP_TRACE_RING_H

#include "lib/trace/trace.h"

struct trace_ring;

/* size: bytes of compressed records. 0 or -ENOMEM. */
int trace_ring_new(u64 size, struct trace_ring **ret_r);
/* The sink; ctx is the ring. */
int trace_ring_take(void *ctx, const struct mp_hdr *rec);
/* All of it to a writer that has no records yet, up to now; the recorded time it says begins with
 * the oldest picture. What follows is taken as before. */
int trace_ring_write(struct trace_ring *r, struct trace_writer *w, u64 now_ns);
u64 trace_ring_bytes(const struct trace_ring *r);
void trace_ring_free(struct trace_ring **r);

#endif
