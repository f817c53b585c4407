/* SPDX-License-Identifier: GPL-2.0-only
 * The file a recording goes to. A recorder is often root and the name often lies in a folder of
 * others: no link is followed, nothing but a former trace is moved away, and one that a living
 * recorder writes is left alone. The lock is held by the open file and ends with it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/trace/format.h"

const char *trace_create_strerror(int err)
{
	const char *text;

	if (err == -ELOOP)
		return "is a symbolic link: name the file itself with -o";
	if (err == -EEXIST)
		return "is not a regular file: name another with -o";
	if (err == -EMEDIUMTYPE)
		return "exists and is not a memprov trace: remove it or name another with -o";
	if (err == -EBUSY)
		return "another memprov is writing to it: name another file with -o";
	if (err == -ENOSPC)
		return "no space left: free some or name a file elsewhere with -o";
	if (err == -EACCES || err == -EROFS || err == -ENOENT)
		return "cannot be created there: name a file in a folder you may write to with -o";
	text = strerrordesc_np(-err);
	return text ? text : "unknown error";
}

/* Is path still the file that fd is? */
static int same_file(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !lstat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int check_old(int fd, const char *path)
{
	char magic[sizeof(TF_MAGIC) - 1];
	struct stat sb;

	if (fstat(fd, &sb))
		return -errno;
	if (!S_ISREG(sb.st_mode))
		return -EEXIST;
	if (sb.st_size && (pread(fd, magic, sizeof(magic), 0) != (ssize_t)sizeof(magic) ||
			   memcmp(magic, TF_MAGIC, sizeof(magic)) != 0))
		return -EMEDIUMTYPE;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return same_file(fd, path) ? 0 : -EBUSY;
}

static int keep_old(const char *path)
{
	struct stat sb;
	char *old;
	int err, fd;

	/* Opening a device or a FIFO can have side effects. */
	if (lstat(path, &sb) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(sb.st_mode))
		return -ELOOP;
	if (!S_ISREG(sb.st_mode))
		return -EEXIST;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = check_old(fd, path);
	if (!err && asprintf(&old, "%s.old", path) < 0)
		err = -ENOMEM;
	if (!err) {
		if (rename(path, old) < 0)
			err = -errno;
		free(old);
	}
	close(fd);
	return err;
}

int trace_create(const char *path)
{
	int err = keep_old(path), fd;

	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	/* Somebody may have taken it for an old one between the two calls. */
	if (flock(fd, LOCK_EX | LOCK_NB) || !same_file(fd, path)) {
		close(fd);
		return -EBUSY;
	}
	return fd;
}
