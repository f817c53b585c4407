/* SPDX-License-Identifier: GPL-2.0-only
 * After a recording: give every stack address in the trace its SYMBOL records. */
#ifndef MP_CAPTURE_SYMBOLIZE_H
#define MP_CAPTURE_SYMBOLIZE_H

#include "lib/trace/trace.h"

/* Reads path (flushed), appends to w. Files that cannot be read cost names, not the recording.
 * 0 or -errno. */
int symbolize(const char *path, struct trace_writer *w);

#endif
