/* SPDX-License-Identifier: GPL-2.0-only
 * A block to records. All columns of a type are decoded at once, each in a loop of its own, into
 * an array of records; a record with a tail is put together when its turn comes. Nothing is
 * trusted: a column that ends early, goes on too long or holds a number too large is -EBADMSG. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/trace/varint.h"

struct batch {
	u32 nr, next;
	u32 size; /* of a record without its tail; 0: they are not decoded */
	u8 *rec;
	struct tf_cursor tail;
};

struct tf_decoder {
	const u8 *types;
	u32 nr, next;
	u16 bulk;
	bool only_bulk;
	u64 lowest; /* number of a bulk record */
	u8 *arena; /* of all batches */
	size_t cap;
	struct batch batch[TF_TYPES];
	u8 key[TF_BLOCK_RECORDS]; /* tid of each record of the type at hand */
	u64 tid[TF_TIDS];
	u64 dict[TF_DICT_MAX];
	u64 whole[(TF_RECORD_MAX + 8) / 8]; /* a record with its tail */
};

struct tf_decoder *tf_decoder_new(void)
{
	return calloc(1, sizeof(struct tf_decoder));
}

void tf_decoder_free(struct tf_decoder *d)
{
	if (d)
		free(d->arena);
	free(d);
}

void tf_decoder_select(struct tf_decoder *d, u16 bulk, bool only)
{
	d->bulk = bulk;
	d->only_bulk = only;
}

u64 tf_decoder_lowest(const struct tf_decoder *d)
{
	return d->lowest;
}

static bool selected(const struct tf_decoder *d, unsigned int type)
{
	return !d->bulk || (type == d->bulk) == d->only_bulk;
}

u32 tf_decoder_bulk(const struct tf_decoder *d, const struct mp_hdr **ret_first)
{
	*ret_first = (const struct mp_hdr *)d->batch[d->bulk].rec;
	return d->batch[d->bulk].nr;
}

/* Where the values of a column go: the first, how far it is to the next, how wide they are and how
 * many of their bytes are kept. */
struct dest {
	u8 *at;
	size_t stride;
	u32 nr;
	u8 size, kept;
};

static inline void store(struct dest to, u32 i, u8 kept, u64 v)
{
	u8 *at = to.at + to.stride * i;

	switch (kept) {
	case 8:
		memcpy(at, &v, 8);
		break;
	case 4:
		memcpy(at, &v, 4);
		break;
	case 2:
		memcpy(at, &v, 2);
		break;
	default:
		*at = (u8)v;
	}
}

/* The loops below take all by value, so that it stays in registers whatever is stored, and are
 * compiled once for each width: kept is a constant in each. */
#define LOOP static __attribute__((always_inline)) inline bool

LOOP get_deltas(struct tf_cursor c, struct dest to, u8 kept)
{
	u64 prev = 0;
	u32 i;

	for (i = 0; i < to.nr; i++) {
		/* Most fields of most records are as in the one before. */
		for (; i < to.nr && c.p < c.end && !*c.p; i++, c.p++)
			store(to, i, kept, prev);
		if (i == to.nr)
			break;
		if (!get_delta(&c, &prev, to.size))
			return false;
		store(to, i, kept, prev);
	}
	return c.p == c.end;
}

LOOP get_deltas_tid(struct tf_decoder *d, struct tf_cursor c, struct dest to, u8 kept)
{
	u32 i;

	memset(d->tid, 0, sizeof(d->tid));
	for (i = 0; i < to.nr; i++) {
		u64 *prev = &d->tid[d->key[i]];

		if (!get_delta(&c, prev, to.size))
			return false;
		store(to, i, kept, *prev);
	}
	return c.p == c.end;
}

LOOP get_plain(struct tf_cursor c, struct dest to, u8 kept)
{
	u64 v;
	u32 i;

	for (i = 0; i < to.nr; i++) {
		if (!get_varint(&c, &v) || v > mask_of(to.size))
			return false;
		store(to, i, kept, v);
	}
	return c.p == c.end;
}

LOOP get_dict(struct tf_decoder *d, struct tf_cursor c, struct dest to, u8 kept)
{
	u32 i, nr = 0;
	u64 k, v;

	for (i = 0; i < to.nr; i++) {
		if (!get_varint(&c, &k) || k > nr)
			return false;
		if (k) {
			v = d->dict[k - 1];
		} else {
			if (!get_varint(&c, &v) || v > mask_of(to.size))
				return false;
			if (nr < TF_DICT_MAX)
				d->dict[nr++] = v;
		}
		store(to, i, kept, v);
	}
	return c.p == c.end;
}

LOOP get_values(struct tf_decoder *d, struct tf_cursor c, u8 coding, struct dest to, u8 kept)
{
	return coding == TF_DICT	? get_dict(d, c, to, kept)
	       : coding == TF_DELTA_TID ? get_deltas_tid(d, c, to, kept)
	       : coding == TF_PLAIN	? get_plain(c, to, kept)
					: get_deltas(c, to, kept);
}

static bool get_column(struct tf_decoder *d, struct tf_cursor c, u8 coding, struct dest to)
{
	switch (to.kept) {
	case 8:
		return get_values(d, c, coding, to, 8);
	case 4:
		return get_values(d, c, coding, to, 4);
	case 2:
		return get_values(d, c, coding, to, 2);
	default:
		return get_values(d, c, coding, to, 1);
	}
}

/* Length by length, cursors over the columns of a block. */
struct columns {
	struct tf_cursor length;
	struct tf_cursor data;
};

static bool next_column(struct columns *in, struct tf_cursor *ret_c)
{
	u32 len;

	if (in->length.end - in->length.p < (s64)sizeof(len))
		return false;
	memcpy(&len, in->length.p, sizeof(len));
	in->length.p += sizeof(len);
	if (len > (size_t)(in->data.end - in->data.p))
		return false;
	*ret_c = (struct tf_cursor){in->data.p, in->data.p + len};
	in->data.p += len;
	return true;
}

/* The lowest of the numbers in a column of them. */
static bool get_lowest(struct tf_decoder *d, struct tf_cursor c, u32 nr)
{
	u64 seq = 0;
	u32 i;

	for (i = 0; i < nr; i++) {
		if (!get_delta(&c, &seq, 8))
			return false;
		if (seq < d->lowest)
			d->lowest = seq;
	}
	return true;
}

static bool get_batch(struct tf_decoder *d, const struct tf_type *t, struct batch *b, u16 type,
		      struct columns *in)
{
	struct tf_cursor c[TF_HDR_COLUMNS + TF_FIELDS_MAX];
	unsigned int i, nr = TF_HDR_COLUMNS + (unsigned int)t->nr_fields;
	u16 offset = sizeof(struct mp_hdr);
	struct mp_hdr hdr = {.type = type, .size = (u16)b->size};

	for (i = 0; i < nr; i++)
		if (!next_column(in, &c[i]))
			return false;
	if (t->tail && !next_column(in, &b->tail))
		return false;
	if (type == d->bulk && !d->only_bulk && !get_lowest(d, c[SEQ_COLUMN], b->nr))
		return false;
	if (!b->size)
		return true;
	/* Fields that an earlier version did not have are 0. */
	if (b->nr)
		memset(b->rec, 0, (size_t)b->size * b->nr);
	for (i = 0; i < b->nr; i++)
		memcpy(b->rec + (size_t)b->size * i, &hdr, sizeof(hdr));
	if (t->key != TF_NO_KEY) {
		struct dest key = {d->key, 1, b->nr, t->size[t->key], 1};

		if (!get_column(d, c[TF_HDR_COLUMNS + t->key], t->coding[t->key], key))
			return false;
	}
	/* Fields that a later version appended are passed over. */
	for (i = 0; i < TF_HDR_COLUMNS + (unsigned int)t->known; i++) {
		struct tf_column col = tf_column_of(t, i, offset);
		struct dest to = {b->rec + col.offset, b->size, b->nr, col.size, col.size};

		if (!get_column(d, c[i], col.coding, to))
			return false;
		if (i >= TF_HDR_COLUMNS)
			offset += col.size;
	}
	return true;
}

/* Counts records and columns; false for a type that the file does not have. */
static bool count_types(struct tf_decoder *d, const struct tf_schema *s, size_t *ret_columns,
			size_t *ret_bytes)
{
	unsigned int type, i;

	memset(d->batch, 0, sizeof(d->batch));
	*ret_columns = *ret_bytes = 0;
	for (i = 0; i < d->nr; i++)
		d->batch[d->types[i]].nr++;
	for (type = 0; type < TF_TYPES; type++) {
		const struct tf_type *t = &s->type[type];
		struct batch *b = &d->batch[type];

		if (!b->nr)
			continue;
		if (!t->present)
			return false;
		*ret_columns += TF_HDR_COLUMNS + (size_t)t->nr_fields + !!t->tail;
		if (!t->known || !selected(d, type))
			continue;
		b->size = sizeof(struct mp_hdr) + trace_event_of((u16)type)->size;
		*ret_bytes += (size_t)b->size * b->nr;
	}
	return true;
}

static int make_room(struct tf_decoder *d, size_t bytes)
{
	u8 *at = d->arena;
	unsigned int type;

	if (bytes > d->cap) {
		at = realloc(d->arena, bytes);
		if (!at)
			return -ENOMEM;
		d->arena = at;
		d->cap = bytes;
	}
	for (type = 0; type < TF_TYPES; type++) {
		d->batch[type].rec = at;
		at += (size_t)d->batch[type].size * d->batch[type].nr;
	}
	return 0;
}

int tf_decode_block(struct tf_decoder *d, const struct tf_schema *s, const u8 *raw, size_t len,
		    u32 records)
{
	size_t nr_columns, bytes;
	struct columns in;
	unsigned int type;
	int err;

	d->nr = d->next = 0;
	d->lowest = ~0ull;
	if (records > TF_BLOCK_RECORDS || records > len)
		return -EBADMSG;
	d->types = raw;
	d->nr = records;
	if (!count_types(d, s, &nr_columns, &bytes) || nr_columns * 4 > len - records)
		return -EBADMSG;
	err = make_room(d, bytes);
	if (err)
		return err;
	in.length = (struct tf_cursor){raw + records, raw + records + nr_columns * 4};
	in.data = (struct tf_cursor){in.length.end, raw + len};
	for (type = 0; type < TF_TYPES; type++)
		if (d->batch[type].nr &&
		    !get_batch(d, &s->type[type], &d->batch[type], (u16)type, &in))
			return -EBADMSG;
	return in.data.p == in.data.end ? 0 : -EBADMSG;
}

/* The record at *ret_rec is given its tail. */
static int get_tail(struct tf_decoder *d, struct batch *b, const struct mp_hdr **ret_rec)
{
	struct mp_hdr *out = (struct mp_hdr *)d->whole;
	struct tf_cursor *c = &b->tail;
	u8 *dst = (u8 *)out + b->size;
	s64 tail = tf_tail_size(*ret_rec);
	size_t bytes = (size_t)tail, n = 0, i;
	u64 prev = 0;

	if (tail < 0 || b->size + bytes > TF_RECORD_MAX)
		return -EBADMSG;
	memcpy(out, *ret_rec, b->size);
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
	memset(dst + 8 * n + bytes, 0, (size_t)tail - 8 * n - bytes);
	c->p += bytes;
	out->size = (u16)(b->size + (size_t)tail);
	*ret_rec = out;
	return 1;
}

static bool has_tail(u8 type)
{
	return type == MP_EV_STRING || type == MP_EV_STACK;
}

int tf_decode(struct tf_decoder *d, const struct tf_schema *s, const struct mp_hdr **ret_rec)
{
	struct batch *b;
	u8 type;

	while (d->next < d->nr && !selected(d, d->types[d->next]))
		d->next++;
	if (d->next == d->nr)
		return -ENODATA;
	type = d->types[d->next++];
	b = &d->batch[type];
	if (!s->type[type].known)
		return 0;
	*ret_rec = (const struct mp_hdr *)(b->rec + (size_t)b->size * b->next++);
	if (!has_tail(type))
		return 1;
	if (get_tail(d, b, ret_rec) < 0)
		return -EBADMSG;
	return b->next < b->nr || b->tail.p == b->tail.end ? 1 : -EBADMSG;
}
