/* SPDX-License-Identifier: GPL-2.0-only
 * One record to bytes and back. A record is its type and then, field by field, the difference to
 * the record of the same type before it in the block, as a zigzag varint: most differences are
 * small or repeat, and that is what zstd behind it lives on. Fields that repeat without being
 * near each other (stack ids) are an index into the values of the block so far instead.
 * The decoder trusts nothing: every length is compared with what is left before it is used. */
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include "lib/trace/format.h"

#define VARINT_MAX 10

u32 tf_block_crc(const struct tf_block_hdr *h, const u8 *payload)
{
	struct tf_block_hdr copy = *h;

	copy.crc = 0;
	return crc32(crc32(0, (const u8 *)&copy, sizeof(copy)), payload, h->comp_len);
}

u32 tf_file_crc(const struct tf_file_hdr *h, const u8 *more, size_t len)
{
	struct tf_file_hdr copy = *h;
	u32 crc;

	copy.crc = 0;
	crc = crc32(0, (const u8 *)&copy, sizeof(copy));
	return len ? crc32(crc, more, len) : crc;
}

void tf_state_reset(struct tf_state *st)
{
	memset(st->hdr, 0, sizeof(st->hdr));
	memset(st->field, 0, sizeof(st->field));
	st->nr_dict = 0;
	if (st->hash)
		memset(st->hash, 0, TF_HASH_SIZE * sizeof(*st->hash));
}

size_t tf_worst(const struct mp_hdr *rec)
{
	/* A field of one byte can take two, one of eight ten, one in the dictionary eleven. */
	return 64 + 2 * (size_t)rec->size;
}

static u8 *put_varint(u8 *p, u64 v)
{
	while (v >= 0x80) {
		*p++ = (u8)(v | 0x80);
		v >>= 7;
	}
	*p++ = (u8)v;
	return p;
}

static bool get_varint(struct tf_cursor *c, u64 *ret_v)
{
	unsigned int i;
	u64 v = 0;

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

static u64 mask_of(u8 size)
{
	return size == 8 ? ~0ull : (1ull << (8 * size)) - 1;
}

/* The difference wraps at the width of the field, so 0 and ~0 are neighbours in every width. */
static u8 *put_delta(u8 *p, u64 *prev, u64 v, u8 size)
{
	u64 d = (v - *prev) & mask_of(size);
	u64 sign = 1ull << (8 * size - 1);

	d = (d ^ sign) - sign;
	*prev = v;
	return put_varint(p, (d << 1) ^ (0 - (d >> 63)));
}

static bool get_delta(struct tf_cursor *c, u64 *prev, u8 size)
{
	u64 z;

	if (!get_varint(c, &z))
		return false;
	*prev = (*prev + ((z >> 1) ^ (0 - (z & 1)))) & mask_of(size);
	return true;
}

static u8 *put_dict(struct tf_state *st, u8 *p, u64 v)
{
	u32 h = (u32)((v * 0x9e3779b97f4a7c15ull) >> 32) % TF_HASH_SIZE;

	for (; st->hash[h]; h = (h + 1) % TF_HASH_SIZE)
		if (st->dict[st->hash[h] - 1] == v)
			return put_varint(p, st->hash[h]);
	if (st->nr_dict < TF_DICT_MAX) {
		st->dict[st->nr_dict++] = v;
		st->hash[h] = st->nr_dict;
	}
	*p++ = 0;
	return put_varint(p, v);
}

static bool get_dict(struct tf_state *st, struct tf_cursor *c, u64 *v)
{
	u64 k;

	if (!get_varint(c, &k) || k > st->nr_dict)
		return false;
	if (k) {
		*v = st->dict[k - 1];
		return true;
	}
	if (!get_varint(c, v))
		return false;
	if (st->nr_dict < TF_DICT_MAX)
		st->dict[st->nr_dict++] = *v;
	return true;
}

/* Bytes of the tail by the counts in the body, or -1 when the counts are out of range. */
static s64 tail_size(u16 type, const struct mp_hdr *rec)
{
	if (type == MP_EV_STRING) {
		u32 len = trace_body(rec, string)->len;

		return len <= MP_STRING_MAX ? (s64)tf_align8(len) : -1;
	}
	if (type == MP_EV_STACK) {
		const struct mp_ev_stack *b = trace_body(rec, stack);

		if (b->n > MP_STACK_DEPTH || b->raw > TF_RECORD_MAX)
			return -1;
		return 8 * (s64)b->n + (s64)tf_align8(b->raw);
	}
	return 0;
}

int tf_check(const struct mp_hdr *rec)
{
	const struct trace_event *e = trace_event_of(rec->type);
	const struct mp_ev_string *s;
	const char *text;
	s64 tail;
	u32 i;

	if (!e || rec->size < sizeof(*rec) + e->size)
		return -EINVAL;
	tail = tail_size(rec->type, rec);
	if (tail < 0 || rec->size != (s64)sizeof(*rec) + e->size + tail)
		return -EINVAL;
	if (rec->type != MP_EV_STRING)
		return 0;
	/* The padding is not in the file; it comes back as zero. */
	s = trace_body(rec, string);
	text = (const char *)(s + 1);
	for (i = s->len; i < tail; i++)
		if (text[i])
			return -EINVAL;
	return 0;
}

static u8 *put_tail(u8 *p, const struct mp_hdr *rec)
{
	const struct mp_ev_string *s = trace_body(rec, string);
	const struct mp_ev_stack *k = trace_body(rec, stack);
	const u64 *frame = (const u64 *)(k + 1);
	u64 prev = 0;
	size_t i, raw;

	if (rec->type == MP_EV_STRING) {
		memcpy(p, s + 1, s->len);
		return p + s->len;
	}
	if (rec->type != MP_EV_STACK)
		return p;
	for (i = 0; i < k->n; i++)
		p = put_delta(p, &prev, frame[i], 8);
	raw = tf_align8(k->raw);
	memcpy(p, frame + k->n, raw);
	return p + raw;
}

u8 *tf_encode(struct tf_state *st, const struct tf_schema *s, const struct mp_hdr *rec, u8 *p)
{
	const struct tf_type *t = &s->type[rec->type];
	const u8 *src = (const u8 *)(rec + 1);
	u64 *hdr = st->hdr[rec->type], *field = st->field[rec->type];
	unsigned int i;

	*p++ = (u8)rec->type;
	p = put_delta(p, &hdr[0], rec->space, 4);
	p = put_delta(p, &hdr[1], rec->seq, 8);
	p = put_delta(p, &hdr[2], rec->time_ns, 8);
	for (i = 0; i < t->nr_fields; i++) {
		u64 v = 0;

		memcpy(&v, src, t->size[i]);
		src += t->size[i];
		if (t->coding[i] == TF_DICT)
			p = put_dict(st, p, v);
		else
			p = put_delta(p, &field[i], v, t->size[i]);
	}
	return put_tail(p, rec);
}

static int get_tail(struct tf_cursor *c, struct mp_hdr *out, size_t body)
{
	u8 *dst = (u8 *)(out + 1) + body;
	s64 tail = tail_size(out->type, out);
	size_t bytes = tail, n = 0, i;
	u64 prev = 0;

	if (tail < 0 || sizeof(*out) + body + bytes > TF_RECORD_MAX)
		return -EBADMSG;
	if (out->type == MP_EV_STACK)
		n = trace_body(out, stack)->n;
	for (i = 0; i < n; i++) {
		if (!get_delta(c, &prev, 8))
			return -EBADMSG;
		memcpy(dst + 8 * i, &prev, 8);
	}
	bytes -= 8 * n;
	if (out->type == MP_EV_STRING)
		bytes = trace_body(out, string)->len;
	if ((size_t)(c->end - c->p) < bytes)
		return -EBADMSG;
	memcpy(dst + 8 * n, c->p, bytes);
	memset(dst + 8 * n + bytes, 0, tail - 8 * n - bytes);
	c->p += bytes;
	out->size = (u16)(sizeof(*out) + body + tail);
	return 1;
}

/* A kind of tail from a later version: its length is in front so that it can be passed over. */
static bool skip_opaque(struct tf_cursor *c)
{
	u64 n;

	if (!get_varint(c, &n) || n > (u64)(c->end - c->p))
		return false;
	c->p += n;
	return true;
}

int tf_decode(struct tf_state *st, const struct tf_schema *s, struct tf_cursor *c,
	      struct mp_hdr *out)
{
	u8 type = c->p < c->end ? *c->p++ : 0;
	const struct tf_type *t = &s->type[type];
	u8 *body = (u8 *)(out + 1), *dst = body;
	u64 *hdr = st->hdr[type], *field = st->field[type];
	unsigned int i;

	if (!t->present || !get_delta(c, &hdr[0], 4) || !get_delta(c, &hdr[1], 8) ||
	    !get_delta(c, &hdr[2], 8))
		return -EBADMSG;
	for (i = 0; i < t->nr_fields; i++) {
		if (t->coding[i] == TF_DICT ? !get_dict(st, c, &field[i])
					    : !get_delta(c, &field[i], t->size[i]))
			return -EBADMSG;
		if (i >= t->known)
			continue;
		memcpy(dst, &field[i], t->size[i]);
		dst += t->size[i];
	}
	*out = (struct mp_hdr){.type = type, .space = hdr[0], .seq = hdr[1], .time_ns = hdr[2]};
	out->size = (u16)(sizeof(*out) + (dst - body));
	if (t->tail >= TF_TAIL_OPAQUE && !skip_opaque(c))
		return -EBADMSG;
	return t->known ? get_tail(c, out, dst - body) : 0;
}
