/* SPDX-License-Identifier: GPL-2.0-only
 * Numbers for things that formats write once and refer to: strings, frames, stacks. */
#ifndef MP_OUT_INTERN_H
#define MP_OUT_INTERN_H

#include <stddef.h>
#include "lib/join/join.h"

struct intern {
	struct intern_key {
		void *data;
		size_t len;
	} * keys; /* by number */
	u32 *slots; /* open addressing: number + 1 */
	u32 n, size;
};

/* The key's number: equal bytes have the same, from 0 on in the order they first came; then n has
 * grown. -ENOMEM. */
s64 intern(struct intern *t, const void *key, size_t len);
s64 intern_text(struct intern *t, const char *s);
/* The number of a key that came before, else -ENOENT. */
s64 intern_find(const struct intern *t, const void *key, size_t len);
/* With a 0 behind it. */
const char *intern_get(const struct intern *t, u32 n);
void intern_free(struct intern *t);

#endif
