/* SPDX-License-Identifier: GPL-2.0-only
 * Gives every stack address of a recording its SYMBOL records: all of them at its end, or the new
 * ones again and again while it goes on. Files that cannot be read cost names, not the recording;
 * those that stopped the reader are counted in *ret_unnamed, by address, and in a LOSS record. */
#ifndef MP_CAPTURE_SYMBOLIZE_H
#define MP_CAPTURE_SYMBOLIZE_H

#include "lib/trace/trace.h"

/* Reads path (flushed), appends to w. 0 or -errno. */
int symbolize(const char *path, struct trace_writer *w, u64 *ret_unnamed);

struct symbolizer;

int symbolizer_new(struct symbolizer **ret_k);
/* Takes note of a SPACE, VMA or STACK; others are passed over. path: the text of a VMA's name,
 * which must live as long as k. */
int symbolizer_feed(struct symbolizer *k, const struct mp_hdr *rec, const char *path);
/* Writes the SYMBOL records of what was fed since the last run. */
int symbolizer_run(struct symbolizer *k, struct trace_writer *w, u64 *ret_unnamed);
void symbolizer_free(struct symbolizer **k);

#endif
