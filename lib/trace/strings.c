/* SPDX-License-Identifier: GPL-2.0-only
 * The writer's strings: which text already has an id. Ids are dense from 1, so the table is an
 * array with a hash of indexes beside it. Adding is in two steps because a STRING record may be
 * refused (-EFBIG) after memory was found, and an id must never be used up by a refused record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/trace/format.h"

struct text {
	char *s;
	u32 len;
	u32 hash;
};

struct tf_strings {
	struct text *text; /* [nr] is the reserved one, if any */
	u32 *bucket; /* id, 0 empty; 2 * cap of them */
	u32 nr;
	u32 cap;
};

static u32 hash_of(const char *s, u32 len)
{
	u32 h = 2166136261u;

	while (len--)
		h = (h ^ (u8)*s++) * 16777619u;
	return h;
}

struct tf_strings *tf_strings_new(void)
{
	return calloc(1, sizeof(struct tf_strings));
}

void tf_strings_free(struct tf_strings *s)
{
	u32 i;

	if (!s)
		return;
	for (i = 0; i < s->cap; i++)
		free(s->text[i].s);
	free(s->text);
	free(s->bucket);
	free(s);
}

u32 tf_strings_nr(const struct tf_strings *s)
{
	return s->nr;
}

const char *tf_strings_text(const struct tf_strings *s, u32 id)
{
	return id && id <= s->nr ? s->text[id - 1].s : NULL;
}

u32 tf_strings_find(const struct tf_strings *s, const char *text, u32 len)
{
	u32 h = hash_of(text, len), mask = 2 * s->cap - 1, i;

	if (!s->nr)
		return 0;
	for (i = h & mask; s->bucket[i]; i = (i + 1) & mask) {
		const struct text *t = &s->text[s->bucket[i] - 1];

		if (t->hash == h && t->len == len && !memcmp(t->s, text, len))
			return s->bucket[i];
	}
	return 0;
}

static void insert(struct tf_strings *s, u32 id)
{
	u32 mask = 2 * s->cap - 1, i = s->text[id - 1].hash & mask;

	while (s->bucket[i])
		i = (i + 1) & mask;
	s->bucket[i] = id;
}

static int grow(struct tf_strings *s)
{
	u32 cap = s->cap ? 2 * s->cap : 64, i;
	struct text *text;
	u32 *bucket;

	if (cap > 1u << 30)
		return -ENOMEM;
	text = realloc(s->text, cap * sizeof(*text));
	if (!text)
		return -ENOMEM;
	memset(text + s->cap, 0, (cap - s->cap) * sizeof(*text));
	s->text = text;
	bucket = calloc(2 * (size_t)cap, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	free(s->bucket);
	s->bucket = bucket;
	s->cap = cap;
	for (i = 1; i <= s->nr; i++)
		insert(s, i);
	return 0;
}

int tf_strings_reserve(struct tf_strings *s, const char *text, u32 len)
{
	struct text *t;
	char *copy;
	int err;

	if (s->nr == s->cap) {
		err = grow(s);
		if (err)
			return err;
	}
	copy = malloc((size_t)len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = 0;
	t = &s->text[s->nr];
	free(t->s);
	*t = (struct text){copy, len, hash_of(text, len)};
	return 0;
}

void tf_strings_add(struct tf_strings *s)
{
	insert(s, ++s->nr);
}
