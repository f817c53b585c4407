/* SPDX-License-Identifier: GPL-2.0-only
 * What writer and reader must agree on about one record: its size by its counts, and how much room
 * it can take in a block. Checksums. */
#include <errno.h>
#include <string.h>
#include <zlib.h>
#include "lib/trace/format.h"

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

s64 tf_tail_size(const struct mp_hdr *rec)
{
	if (rec->type == MP_EV_STRING) {
		u32 len = trace_body(rec, string)->len;

		return len <= MP_STRING_MAX ? (s64)tf_align8(len) : -1;
	}
	if (rec->type == MP_EV_STACK) {
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
	tail = tf_tail_size(rec);
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

/* A number of n bytes as a varint, or behind the 0 that says a dictionary did not have it. */
static size_t worst_of(u8 size)
{
	return 2 + (size_t)size + size / 4;
}

size_t tf_worst(const struct mp_hdr *rec, bool first)
{
	const struct trace_event *e = trace_event_of(rec->type);
	size_t sum = 1 + worst_of(4) + worst_of(8) + worst_of(8);
	unsigned int i;

	for (i = 0; i < e->nr_fields; i++)
		sum += worst_of(e->fields[i].size);
	/* A frame of a stack takes up to ten bytes for its eight; the columns' lengths come last.
	 */
	sum += ((size_t)rec->size - sizeof(*rec) - e->size) * 5 / 4;
	return sum + (first ? 4 * ((size_t)e->nr_fields + TF_HDR_COLUMNS + 1) : 0);
}
