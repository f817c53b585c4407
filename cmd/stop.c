/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include "cmd/stop.h"

static void write_fails(int sig)
{
	(void)sig;
}

void stop_by_signal(const struct sigaction *stop)
{
	static const struct sigaction full = {.sa_handler = write_fails};
	struct sigaction old;

	sigaction(SIGINT, stop, NULL);
	sigaction(SIGTERM, stop, NULL);
	/* nohup(1) means it. */
	if (!sigaction(SIGHUP, NULL, &old) && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, stop, NULL);
	sigaction(SIGXFSZ, &full, NULL);
}
