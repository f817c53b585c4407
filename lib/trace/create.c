/* SPDX-License-Identifier: GPL-2.0-only
 * The file a recording goes to. A recorder is often root and the name often lies in a folder of
 * others: no link is followed, nothing but a former trace is moved away, and one that a living
 * recorder writes is left alone. The lock is held by the open file and ends with it.
 *
 * A recording that cannot start must not cost a good one: it begins as path.starting and takes its
 * name, and the former one's, when there is something in it. Only who holds path.starting looks at
 * path or moves it, so what was free at the start is free at the end. */
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
	if (err == -EFBIG)
		return "--max-size leaves no room for a trace: try 512M";
	text = strerrordesc_np(-err);
	return text ? text : "unknown error";
}

static int beside(const char *path, const char *suffix, char **ret)
{
	return asprintf(ret, "%s%s", path, suffix) < 0 ? -ENOMEM : 0;
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

/* Path, locked, when a former trace is there that may be moved away; -ENOENT when nothing is. */
static int open_old(const char *path)
{
	struct stat sb;
	int err, fd;

	/* Opening a device or a FIFO can have side effects. */
	if (lstat(path, &sb) < 0)
		return -errno;
	if (S_ISLNK(sb.st_mode))
		return -ELOOP;
	if (!S_ISREG(sb.st_mode))
		return -EEXIST;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = check_old(fd, path);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int keep_old(const char *path)
{
	int fd = open_old(path), err;
	char *old;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = beside(path, ".old", &old);
	if (!err) {
		if (rename(path, old) < 0)
			err = -errno;
		free(old);
	}
	close(fd);
	return err;
}

/* What a recorder that was killed while it started has left. */
static int remove_stale(const char *temp)
{
	int fd = open_old(temp), err = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (unlink(temp) < 0)
		err = -errno;
	close(fd);
	return err;
}

static int create_locked(const char *temp)
{
	int err = remove_stale(temp), fd;

	if (err)
		return err;
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? -EBUSY : -errno;
	/* Somebody may have taken it for a stale one between the two calls. */
	if (flock(fd, LOCK_EX | LOCK_NB) || !same_file(fd, temp)) {
		close(fd);
		return -EBUSY;
	}
	return fd;
}

int trace_create(const char *path)
{
	char *temp;
	int err = beside(path, ".starting", &temp), fd, old;

	if (err)
		return err;
	fd = create_locked(temp);
	if (fd >= 0) {
		old = open_old(path);
		if (old >= 0) {
			close(old);
		} else if (old != -ENOENT) {
			unlink(temp);
			close(fd);
			fd = old;
		}
	}
	free(temp);
	return fd;
}

int trace_publish(const char *path)
{
	char *temp;
	int err = keep_old(path);

	if (!err)
		err = beside(path, ".starting", &temp);
	if (err)
		return err;
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		err = errno == EEXIST ? -EBUSY : -errno;
	/* Not every file system knows the flag. */
	if (err == -EINVAL)
		err = rename(temp, path) < 0 ? -errno : 0;
	free(temp);
	return err;
}

void trace_discard(const char *path)
{
	char *temp;

	if (beside(path, ".starting", &temp))
		return;
	unlink(temp);
	free(temp);
}
