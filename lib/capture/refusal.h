/* SPDX-License-Identifier: GPL-2.0-only
 * Why the kernel does not run our BPF programs, and what to do about it. */
#ifndef MP_CAPTURE_REFUSAL_H
#define MP_CAPTURE_REFUSAL_H

#include <stddef.h>

enum refusal_of {
	REFUSAL_PROGRAMS,
	REFUSAL_ALLOC,
	REFUSAL_WALK,
};

/* What these programs stand on and this kernel's own types lack, or NULL. */
const char *refusal_lacks(enum refusal_of of);
/* One line, a reason and behind a colon the remedy, for err as loading or attaching returned it. */
void refusal_explain(int err, char *msg, size_t len);

#endif
