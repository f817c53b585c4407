/* SPDX-License-Identifier: GPL-2.0-only
 * Text of any origin - names of processes, files and functions, which a target chooses - on its way
 * to terminals and formats: UTF-8 without control characters; every other byte becomes a ?. */
#ifndef MP_TEXT_TEXT_H
#define MP_TEXT_TEXT_H

#include <stddef.h>
#include <stdio.h>
#include "bpf/shared/types.h"

/* Length of the UTF-8 character at p, of which len > 0 bytes are there; 0 when it is none, or one
 * that moves what stands around it: control characters, line ends, overrides of direction. */
size_t text_char(const u8 *p, size_t len);
/* NULL: a ?. */
void text_put(FILE *f, const char *s);
/* At most len - 1 bytes of it, whole characters, with a 0 behind. Returns ret. */
char *text_copy(char *ret, size_t len, const char *s);
/* All of it, to be freed; NULL without memory. */
char *text_clean(const char *s);

/* near.c: how many letters differ, are missing or too many; 99 for a long b. */
unsigned int text_distance(const char *a, const char *b);
/* The one of the list (NULL ends) that was probably meant; NULL: none is near. */
const char *text_nearest(const char *word, const char *const *list);

#endif
