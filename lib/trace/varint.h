/* SPDX-License-Identifier: GPL-2.0-only
 * Numbers in a column: 7 bits a byte, and differences folded so that small ones of either sign are
 * short. Reading trusts nothing: no number ends behind the cursor's end or has more than 64 bits.
 */
#ifndef MP_TRACE_VARINT_H
#define MP_TRACE_VARINT_H

#include "lib/trace/format.h"

#define VARINT_MAX 10

static inline u8 *put_varint(u8 *p, u64 v)
{
	while (v >= 0x80) {
		*p++ = (u8)(v | 0x80);
		v >>= 7;
	}
	*p++ = (u8)v;
	return p;
}

static inline bool get_varint(struct tf_cursor *c, u64 *ret_v)
{
	unsigned int i;
	u64 v = 0;

	/* Most are short. */
	if (c->p < c->end && !(*c->p & 0x80)) {
		*ret_v = *c->p++;
		return true;
	}
	for (i = 0; i < VARINT_MAX && c->p < c->end; i++) {
		u8 b = *c->p++;

		if (i == VARINT_MAX - 1 && b > 1)
			return false;
		v |= (u64)(b & 0x7f) << (7 * i);
		if (!(b & 0x80)) {
			*ret_v = v;
			return true;
		}
	}
	return false;
}

static inline u64 mask_of(u8 size)
{
	return size == 8 ? ~0ull : (1ull << (8 * size)) - 1;
}

/* The difference wraps at the width of the field, so 0 and ~0 are neighbours in every width. */
static inline u8 *put_delta(u8 *p, u64 *prev, u64 v, u8 size)
{
	u64 d = (v - *prev) & mask_of(size);
	u64 sign = 1ull << (8 * size - 1);

	d = (d ^ sign) - sign;
	*prev = v;
	return put_varint(p, (d << 1) ^ (0 - (d >> 63)));
}

static inline bool get_delta(struct tf_cursor *c, u64 *prev, u8 size)
{
	u64 z;

	if (!get_varint(c, &z))
		return false;
	*prev = (*prev + ((z >> 1) ^ (0 - (z & 1)))) & mask_of(size);
	return true;
}

#endif
