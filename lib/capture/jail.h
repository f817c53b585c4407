/* SPDX-License-Identifier: GPL-2.0-only
 * A process about to read files that an attacker may have made gives up what it could abuse. */
#ifndef MP_CAPTURE_JAIL_H
#define MP_CAPTURE_JAIL_H

#include <stddef.h>

/* For a forked child: closes every fd but keep (sorted here), takes the user nobody when it was
 * root, drops all capabilities, limits memory and cpu time, and lets only those system calls
 * through that reading files takes. There is no way back. 0 or -errno. */
int jail_enter(int *keep, size_t nr_keep);

#endif
