/* SPDX-License-Identifier: GPL-2.0-only
 * The flight recorder: a recording that stays in memory until there is a reason to keep its last
 * while, and that is prepared for the machine running out of memory around it. */
#ifndef MP_CAPTURE_FLIGHT_H
#define MP_CAPTURE_FLIGHT_H

#include "lib/capture/trigger.h"
#include "lib/trace/trace.h"

struct flight;

/* ring: bytes of it. */
int flight_new(const char *path, u64 ring, u64 max_size, struct flight **ret_f);
/* What it records goes here. */
struct trace_writer *flight_writer(const struct flight *f);
struct triggers *flight_triggers(const struct flight *f);
/* Its memory stays in memory, and the kernel kills others first. NULL, or which of them was
 * refused. */
const char *flight_prepare(void);
/* The ring becomes a file at its path, which ends with reason (enum mp_end); what was there becomes
 * path.old. seq: the recording's order as of now. */
int flight_write(struct flight *f, const struct trigger_cause *c, u32 reason, u64 seq,
		 u64 *ret_unnamed);
u64 flight_bytes(const struct flight *f); /* of the latest file */
void flight_free(struct flight **f);

#endif
