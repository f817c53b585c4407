/* SPDX-License-Identifier: GPL-2.0-only
 * Which of the capabilities that recording takes this process lacks. */
#ifndef MP_CAPTURE_PRIVILEGE_H
#define MP_CAPTURE_PRIVILEGE_H

#include <stddef.h>

enum privilege {
	NEED_BPF = 1, /* load programs, make maps */
	NEED_PERFMON = 2, /* programs that read kernel memory and hooks */
	NEED_PTRACE = 4, /* look into processes of other users */
	NEED_ADMIN = 8, /* page frame numbers */
};

/* Of those in need: the missing ones. */
int privilege_missing(int need);
/* Their names, joined by commas. */
const char *privilege_names(int set, char *buf, size_t len);

#endif
