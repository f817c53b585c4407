/* SPDX-License-Identifier: GPL-2.0-only
 * Opening files that belong to the profiled program: any name may be a trap. */
#ifndef MP_SYM_FILE_H
#define MP_SYM_FILE_H

#include <sys/stat.h>

/* Opens path for reading if it is a regular file, with nothing else ever opened on the way. root: a
 * directory that path and every link in it cannot leave, -1 for this process's own root. *ret_st
 * describes the file. An fd (close on exec) or -errno. */
int file_open(int root, const char *path, struct stat *ret_st);

#endif
