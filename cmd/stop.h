/* SPDX-License-Identifier: GPL-2.0-only
 * The signals that end a recording in order. */
#ifndef MP_CMD_STOP_H
#define MP_CMD_STOP_H

#include <signal.h>

/* stop for Ctrl-C, kill(1) and a terminal that goes. A file grown to its limit fails the write. */
void stop_by_signal(const struct sigaction *stop);

#endif
