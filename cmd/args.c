/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd/args.h"

int parse_count(const char *text, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno || *ret > 1u << 30 ? -1 : 0;
}

static int copy_input(int to)
{
	char buf[65536];
	ssize_t n, done, got;

	while ((n = read(0, buf, sizeof(buf))) > 0) {
		for (done = 0; done < n; done += got) {
			got = write(to, buf + done, (size_t)(n - done));
			if (got < 0)
				return -errno;
		}
	}
	return n < 0 ? -errno : 0;
}

/* A trace is read from a file of known length: a pipe is kept in memory. */
static int join_input(enum owner_mode owner, struct report **ret_r)
{
	int fd = memfd_create("memprov-input", MFD_CLOEXEC), err;
	char path[64];

	if (fd < 0)
		return -errno;
	err = copy_input(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!err)
		err = join_file(path, owner, ret_r);
	close(fd);
	return err;
}

int input_join(const char *path, enum owner_mode owner, struct report **ret_r)
{
	return strcmp(path, "-") ? join_file(path, owner, ret_r) : join_input(owner, ret_r);
}
