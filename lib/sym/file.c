/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/sym/file.h"

/* A path may name a device or a FIFO, whose mere opening can have side effects: it is found first
 * and opened, as the very same inode, when it is known to be a file. */
int file_open(int root, const char *path, struct stat *ret_st)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char self[64];
	int found;
	int fd;

	found = root < 0 ? open(path, O_PATH | O_CLOEXEC)
			 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (found < 0)
		return -errno;
	if (fstat(found, ret_st)) {
		fd = -errno;
	} else if (!S_ISREG(ret_st->st_mode)) {
		fd = -EINVAL;
	} else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", found);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			fd = -errno;
	}
	close(found);
	return fd;
}

struct file_version file_version_of(int fd)
{
	struct stat st = {0};

	if (fstat(fd, &st))
		return (struct file_version){0};
	return (struct file_version){st.st_dev, st.st_ino, st.st_size, st.st_mtim};
}

bool file_version_equal(const struct file_version *a, const struct file_version *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}
