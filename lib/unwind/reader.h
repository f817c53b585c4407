/* SPDX-License-Identifier: GPL-2.0-only
 * Numbers out of a piece of memory, never from beyond its end. */
#ifndef MP_UNWIND_READER_H
#define MP_UNWIND_READER_H

#include <stddef.h>
#include <string.h>
#include "bpf/shared/types.h"

struct reader {
	const u8 *p, *end;
	int bad; /* it ended early; everything read since is 0 */
};

static inline u64 read_uint(struct reader *r, size_t size)
{
	u64 v = 0;

	if ((size_t)(r->end - r->p) < size) {
		r->bad = 1;
		r->p = r->end;
		return 0;
	}
	memcpy(&v, r->p, size); /* little-endian, as all that we read */
	r->p += size;
	return v;
}

static inline s64 read_sint(struct reader *r, size_t size)
{
	u64 v = read_uint(r, size), sign = 1ull << (size * 8 - 1);

	return (s64)((v ^ sign) - sign);
}

static inline u64 read_uleb(struct reader *r)
{
	unsigned int shift = 0;
	u64 v = 0;
	u8 b;

	do {
		b = (u8)read_uint(r, 1);
		if (shift < 64)
			v |= (u64)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	return v;
}

static inline s64 read_sleb(struct reader *r)
{
	unsigned int shift = 0;
	u64 v = 0;
	u8 b;

	do {
		b = (u8)read_uint(r, 1);
		if (shift < 64)
			v |= (u64)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80);
	if (shift < 64 && b & 0x40)
		v |= ~0ull << shift;
	return (s64)v;
}

static inline void skip(struct reader *r, u64 len)
{
	if ((u64)(r->end - r->p) < len) {
		r->bad = 1;
		len = (u64)(r->end - r->p);
	}
	r->p += len;
}

#endif
