/* SPDX-License-Identifier: GPL-2.0-only
 * After a recording: give every stack address in the trace its SYMBOL records. */
#ifndef MP_CAPTURE_SYMBOLIZE_H
#define MP_CAPTURE_SYMBOLIZE_H

#include "lib/trace/trace.h"

/* Reads path (flushed), appends to w. Files that cannot be read cost names, not the recording;
 * those that stopped the reader are counted in *ret_unnamed, by address, and in a LOSS record. 0 or
 * -errno. */
int symbolize(const char *path, struct trace_writer *w, u64 *ret_unnamed);

#endif
