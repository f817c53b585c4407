/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/pager.h"

FILE *pager_open(void)
{
	const char *pager = getenv("PAGER");
	FILE *f = NULL;

	if (pager && *pager && strcmp(pager, "cat") != 0 && isatty(1)) {
		setenv("LESS", "FRX", 0); /* short results are just printed */
		signal(SIGPIPE, SIG_IGN);
		f = popen(pager, "w");
	}
	return f ? f : stdout;
}

int pager_close(FILE *f)
{
	if (f == stdout)
		return 0;
	if (fflush(f) && errno != EPIPE) {
		int err = -errno;

		pclose(f);
		return err;
	}
	return pclose(f) < 0 ? -errno : 0;
}
