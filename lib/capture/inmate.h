/* SPDX-License-Identifier: GPL-2.0-only
 * A child in the jail (jail.h) that reads files for us and says through a pipe what it found. It
 * may crash, hang, or be taken over by a file: what it says is data of unknown origin. */
#ifndef MP_CAPTURE_INMATE_H
#define MP_CAPTURE_INMATE_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/types.h"

struct inmate {
	pid_t pid; /* 0: none */
	int pipe;
};

/* The child runs work(ctx, out), with fds and out open, and ends. 0 or -errno. */
int inmate_start(struct inmate *p, const char *name, const int *fds, size_t nr_fds,
		 int (*work)(void *ctx, int out), void *ctx);
void inmate_end(struct inmate *p);
/* All of buf, until then at the latest. 0, -ETIMEDOUT, or -EPIPE: the child is gone. */
int inmate_read(const struct inmate *p, void *buf, size_t len, u64 until_ms);
/* For the child. 0 or -EPIPE. */
int inmate_write(int out, const void *buf, size_t len);
u64 now_ms(void);

#endif
