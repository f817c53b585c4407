/* SPDX-License-Identifier: GPL-2.0-only
 * Processes and their children, by /proc. */
#ifndef MP_CAPTURE_TREE_H
#define MP_CAPTURE_TREE_H

#include <sys/types.h>

pid_t tree_parent(pid_t pid); /* 0: it has gone */
/* Has it the address space of this other process (vfork, CLONE_VM)? 0 where nobody may ask. */
int tree_same_memory(pid_t pid, pid_t other);
/* fn for every process whose parent is followed, as is_followed says, until a look at all of them
 * finds no other: fn follows it, and its own children are found in turn. 0 or what fn returns. */
int tree_each(int (*is_followed)(void *ctx, pid_t pid), int (*fn)(void *ctx, pid_t pid), void *ctx);

#endif
