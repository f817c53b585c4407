/* SPDX-License-Identifier: GPL-2.0-only
 * Records to a block. The block is a table turned on its side: first the type of every record, then
 * for each type a column for each field, since what stands in one column looks alike and what
 * stands in one record does not. memprov-trace(5) has the layout. */
#include <stdlib.h>
#include <string.h>
#include "lib/trace/varint.h"

#define HASH_SIZE (2 * TF_DICT_MAX)

struct tf_encoder {
	u32 at[TF_BLOCK_RECORDS]; /* where the records lie, by type */
	u32 first[TF_TYPES + 1]; /* of each type, in at */
	u64 tid[TF_TIDS];
	u32 nr_dict;
	u64 dict[TF_DICT_MAX];
	u32 hash[HASH_SIZE]; /* dict turned round: index from 1, 0 free */
};

struct tf_encoder *tf_encoder_new(void)
{
	return calloc(1, sizeof(struct tf_encoder));
}

static void dict_reset(struct tf_encoder *e)
{
	if (e->nr_dict)
		memset(e->hash, 0, sizeof(e->hash));
	e->nr_dict = 0;
}

static u8 *put_dict(struct tf_encoder *e, u8 *p, u64 v)
{
	u32 h = (u32)((v * 0x9e3779b97f4a7c15ull) >> 32) % HASH_SIZE;

	for (; e->hash[h]; h = (h + 1) % HASH_SIZE)
		if (e->dict[e->hash[h] - 1] == v)
			return put_varint(p, e->hash[h]);
	if (e->nr_dict < TF_DICT_MAX) {
		e->dict[e->nr_dict++] = v;
		e->hash[h] = e->nr_dict;
	}
	*p++ = 0;
	return put_varint(p, v);
}

static u64 value_at(const u8 *rec, u16 offset, u8 size)
{
	u64 v = 0;

	memcpy(&v, rec + offset, size);
	return v;
}

/* key: offset of the field tid. */
static u8 *put_column(struct tf_encoder *e, u8 *p, const u8 *recs, unsigned int type,
		      struct tf_column c, u16 key)
{
	u64 prev = 0, *last = &prev;
	u32 i;

	dict_reset(e);
	if (c.coding == TF_DELTA_TID)
		memset(e->tid, 0, sizeof(e->tid));
	for (i = e->first[type]; i < e->first[type + 1]; i++) {
		const u8 *rec = recs + e->at[i];
		u64 v = value_at(rec, c.offset, c.size);

		if (c.coding == TF_DICT) {
			p = put_dict(e, p, v);
		} else if (c.coding == TF_PLAIN) {
			p = put_varint(p, v);
		} else {
			if (c.coding == TF_DELTA_TID)
				last = &e->tid[value_at(rec, key, 1)];
			p = put_delta(p, last, v, c.size);
		}
	}
	return p;
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
	for (i = 0; i < k->n; i++)
		p = put_delta(p, &prev, frame[i], 8);
	raw = tf_align8(k->raw);
	memcpy(p, frame + k->n, raw);
	return p + raw;
}

static u8 *put_tails(struct tf_encoder *e, u8 *p, const u8 *recs, unsigned int type)
{
	u32 i;

	for (i = e->first[type]; i < e->first[type + 1]; i++)
		p = put_tail(p, (const struct mp_hdr *)(recs + e->at[i]));
	return p;
}

static void put_length(u8 **lengths, size_t len)
{
	u32 n = (u32)len;

	memcpy(*lengths, &n, sizeof(n));
	*lengths += sizeof(n);
}

static u16 offset_of(const struct tf_type *t, unsigned int field)
{
	u16 offset = sizeof(struct mp_hdr);

	while (field--)
		offset += t->size[field];
	return offset;
}

static u8 *put_type(struct tf_encoder *e, const struct tf_type *t, const u8 *recs,
		    unsigned int type, u8 *p, u8 **lengths)
{
	u16 offset = sizeof(struct mp_hdr);
	u16 key = t->key == TF_NO_KEY ? 0 : offset_of(t, t->key);
	unsigned int i;

	for (i = 0; i < TF_HDR_COLUMNS + (unsigned int)t->nr_fields; i++) {
		u8 *begin = p;

		p = put_column(e, p, recs, type, tf_column_of(t, i, offset), key);
		put_length(lengths, (size_t)(p - begin));
		if (i >= TF_HDR_COLUMNS)
			offset += t->size[i - TF_HDR_COLUMNS];
	}
	if (t->tail) {
		u8 *begin = p;

		p = put_tails(e, p, recs, type);
		put_length(lengths, (size_t)(p - begin));
	}
	return p;
}

/* Fills at and first, and the types of the records. Returns how many columns there are. */
static size_t sort_by_type(struct tf_encoder *e, const struct tf_schema *s, const u8 *recs, u32 nr,
			   u8 *types)
{
	u32 next[TF_TYPES], i, at;
	size_t columns = 0;

	memset(e->first, 0, sizeof(e->first));
	for (i = 0, at = 0; i < nr; i++) {
		const struct mp_hdr *rec = (const struct mp_hdr *)(recs + at);

		types[i] = (u8)rec->type;
		e->first[rec->type + 1]++;
		at += rec->size;
	}
	for (i = 0; i < TF_TYPES; i++) {
		const struct tf_type *t = &s->type[i];

		if (e->first[i + 1])
			columns += TF_HDR_COLUMNS + (size_t)t->nr_fields + !!t->tail;
		e->first[i + 1] += e->first[i];
		next[i] = e->first[i];
	}
	for (i = 0, at = 0; i < nr; i++) {
		e->at[next[types[i]]++] = at;
		at += ((const struct mp_hdr *)(recs + at))->size;
	}
	return columns;
}

size_t tf_encode(struct tf_encoder *e, const struct tf_schema *s, const u8 *recs, u32 nr, u8 *out)
{
	u8 *lengths = out + nr, *p = lengths + 4 * sort_by_type(e, s, recs, nr, out);
	unsigned int type;

	for (type = 0; type < TF_TYPES; type++)
		if (e->first[type] < e->first[type + 1])
			p = put_type(e, &s->type[type], recs, type, p, &lengths);
	return (size_t)(p - out);
}
