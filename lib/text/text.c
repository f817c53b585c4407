/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>
#include "lib/text/text.h"

/* Of two or more bytes, in the BMP: C1, line and paragraph separator, marks, embeddings and
 * isolates of direction. */
static int is_control(u32 c)
{
	return (c >= 0x80 && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c;
}

size_t text_char(const u8 *p, size_t len)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i;
	u32 c;

	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	if (!n || n > len || p[0] > 0xf4)
		return 0;
	for (c = p[0] & (0x7f >> n), i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	/* Longer than need be, half of a UTF-16 pair, behind the last. */
	if ((n == 3 && c < 0x800) || (c >= 0xd800 && c < 0xe000) || (n == 4 && c < 0x10000) ||
	    c > 0x10ffff)
		return 0;
	return is_control(c) ? 0 : n;
}

void text_put(FILE *f, const char *s)
{
	const u8 *p = (const u8 *)(s ? s : "?");
	size_t left = strlen((const char *)p), n;

	for (; left; p += n, left -= n) {
		n = text_char(p, left);
		if (n)
			fwrite(p, 1, n, f);
		else
			fputc('?', f);
		n += !n;
	}
}

char *text_copy(char *ret, size_t len, const char *s)
{
	const u8 *p = (const u8 *)(s ? s : "?");
	size_t left = strlen((const char *)p), at = 0, n;

	for (; left; p += n, left -= n) {
		n = text_char(p, left);
		if (at + (n ? n : 1) >= len)
			break;
		if (n)
			memcpy(ret + at, p, n);
		else
			ret[at] = '?';
		n += !n;
		at += n;
	}
	ret[at] = 0;
	return ret;
}

char *text_clean(const char *s)
{
	size_t len = s ? strlen(s) + 1 : 2;
	char *copy = malloc(len);

	return copy ? text_copy(copy, len, s) : NULL;
}
