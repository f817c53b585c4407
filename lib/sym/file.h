/* SPDX-License-Identifier: GPL-2.0-only
 * Opening files that belong to the profiled program: any name may be a trap. */
#ifndef MP_SYM_FILE_H
#define MP_SYM_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Opens path for reading if it is a regular file, with nothing else ever opened on the way. root: a
 * directory that path and every link in it cannot leave, -1 for this process's own root. *ret_st
 * describes the file. An fd (close on exec) or -errno. */
int file_open(int root, const char *path, struct stat *ret_st);

/* One content of a file: with another size or time of change it is another. */
struct file_version {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

/* That of the file behind fd; all zeros where it cannot be told. */
struct file_version file_version_of(int fd);
bool file_version_equal(const struct file_version *a, const struct file_version *b);

#endif
