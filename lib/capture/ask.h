/* SPDX-License-Identifier: GPL-2.0-only
 * A question to a file that an attacker may have made, put by a child that has nothing to lose. */
#ifndef MP_CAPTURE_ASK_H
#define MP_CAPTURE_ASK_H

#include <stddef.h>

/* Calls fn in a jail with fd and what it may answer into, zeroed, of len bytes, which comes back
 * into ret: anything at all, when the file has taken the child over. 0; -ETIMEDOUT, -EBADMSG when
 * the child did not answer, -EAGAIN. */
int ask_file(int fd, void (*fn)(const void *ctx, int fd, void *answer), const void *ctx, void *ret,
	     size_t len);

#endif
