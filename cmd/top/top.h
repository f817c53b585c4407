/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to top: what was asked for, and its two sources of reports. */
#ifndef MP_CMD_TOP_TOP_H
#define MP_CMD_TOP_TOP_H

#include <signal.h>
#include "cmd/target.h"
#include "cmd/top/screen.h"

struct top_options {
	struct target target;
	const char *input, *by, *group;
	double seconds;
	unsigned long batch; /* tables to print, 0: until the end */
	unsigned int rows;
	int bytes, screen; /* screen: on a terminal, with keys */
};

/* Set by the signals of cmd/stop.h, once top_signals() was called. */
extern volatile sig_atomic_t top_stop;
void top_signals(void);
/* Groups and sorts r, and prints it. */
int top_table(FILE *f, struct report *r, const struct out_opts *o);
/* live.c: follows the targets until they end, or the user has enough. Returns the exit status. */
int top_live(const struct top_options *o, const struct out_opts *out);

#endif
