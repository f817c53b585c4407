/* SPDX-License-Identifier: GPL-2.0-only
 * CPython in the processes that a session follows: tells the programs in the kernel where its
 * interpreter keeps its frames, and names those that stacks have. Of a version whose offsets are
 * not in the table nothing is read. */
#ifndef MP_CAPTURE_PYTHON_H
#define MP_CAPTURE_PYTHON_H

#include "lib/trace/trace.h"

struct python;
struct session;

int python_open(struct session *s, struct trace_writer *w, struct python **ret_p);
/* Looks at what was mapped since the last turn. Whenever the rings were drained. */
int python_turn(struct python *p);
void python_free(struct python **p);

#endif
