/* SPDX-License-Identifier: GPL-2.0-only
 * Samples of a perf.data file into the trace. The file is read by a child that has nothing to lose
 * (jail.h); what the child says is taken as numbers of unknown origin. */
#ifndef MP_CAPTURE_IMPORT_H
#define MP_CAPTURE_IMPORT_H

#include <stddef.h>
#include "lib/trace/trace.h"

/* seq: of the recording's latest event. began, ended: the recorded time; where the file has the
 * same clock, samples of another are left out. 0, or -errno with a line of reason in msg; what was
 * written stays. */
int import_samples(const char *path, u64 seq, u64 began_ns, u64 ended_ns, struct trace_writer *w,
		   char *msg, size_t msg_len);

#endif
