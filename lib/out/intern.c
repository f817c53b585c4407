/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/out/intern.h"

static u64 hash(const void *key, size_t len)
{
	const unsigned char *p = key;
	u64 h = 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h ^ h >> 32;
}

static u32 *slot(const struct intern *t, const void *key, size_t len)
{
	u32 at = (u32)hash(key, len) & (t->size - 1);

	while (t->slots[at]) {
		const struct intern_key *k = &t->keys[t->slots[at] - 1];

		if (k->len == len && !memcmp(k->data, key, len))
			break;
		at = (at + 1) & (t->size - 1);
	}
	return &t->slots[at];
}

static int grow(struct intern *t)
{
	struct intern bigger = {.n = t->n, .size = t->size ? t->size * 2 : 256};
	u32 i;

	bigger.keys = realloc(t->keys, bigger.size / 2 * sizeof(*bigger.keys));
	if (!bigger.keys)
		return -ENOMEM;
	t->keys = bigger.keys;
	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (i = 0; i < t->n; i++)
		*slot(&bigger, t->keys[i].data, t->keys[i].len) = i + 1;
	free(t->slots);
	*t = bigger;
	return 0;
}

s64 intern(struct intern *t, const void *key, size_t len)
{
	char *copy;
	u32 *at;

	if (t->n == t->size / 2 && grow(t))
		return -ENOMEM;
	at = slot(t, key, len);
	if (*at)
		return *at - 1;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, key, len);
	copy[len] = 0;
	t->keys[t->n] = (struct intern_key){copy, len};
	*at = ++t->n;
	return t->n - 1;
}

s64 intern_find(const struct intern *t, const void *key, size_t len)
{
	u32 number = t->size ? *slot(t, key, len) : 0;

	return number ? (s64)number - 1 : -ENOENT;
}

s64 intern_text(struct intern *t, const char *s)
{
	return intern(t, s, strlen(s));
}

const char *intern_get(const struct intern *t, u32 n)
{
	return t->keys[n].data;
}

void intern_free(struct intern *t)
{
	u32 i;

	for (i = 0; i < t->n; i++)
		free(t->keys[i].data);
	free(t->keys);
	free(t->slots);
	memset(t, 0, sizeof(*t));
}
