/* SPDX-License-Identifier: GPL-2.0-only
 * What the trace writer and the trace reader share and nobody else sees: the layout of the file,
 * its limits, the file's schema and the coding of one record. memprov-trace(5) says it in words;
 * the limits here are what keeps a hostile file from making the reader allocate or overrun. */
#ifndef MP_TRACE_FORMAT_H
#define MP_TRACE_FORMAT_H

#include <stdbool.h>
#include "lib/trace/trace.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the trace file is little endian and is mapped onto structs"
#endif

#define TF_MAGIC	 "MEMPROV" /* with its NUL: 8 bytes */
#define TF_MAJOR	 2
#define TF_MINOR	 0
#define TF_HEADER_MAX	 4096
#define TF_BLOCK_MAGIC	 0x4b4c424du /* "MBLK" */
#define TF_KIND_SCHEMA	 1
#define TF_KIND_RECORDS	 2
#define TF_RAW_MAX	 (4u << 20)
#define TF_COMP_MAX	 (TF_RAW_MAX + (1u << 16)) /* above zstd's bound for TF_RAW_MAX */
#define TF_BLOCK_RECORDS (1u << 16)
#define TF_BLOCK_FULL	 (1u << 15) /* the writer ends a block here */
#define TF_TYPES	 256
#define TF_FIELDS_MAX	 64
#define TF_DICT_MAX	 (1u << 16)
#define TF_HASH_SIZE	 (2 * TF_DICT_MAX)
#define TF_TIDS		 256
#define TF_NO_KEY	 255
#define TF_RECORD_MAX	 65528u /* largest multiple of 8 in mp_hdr.size */

struct tf_file_hdr {
	char magic[8];
	u16 major;
	u16 minor;
	u32 header_size;
	u32 flags;
	u32 crc; /* of the header, this field as 0 */
};

struct tf_block_hdr {
	u32 magic;
	u32 kind;
	u32 raw_len;
	u32 comp_len;
	u32 crc; /* of this header, this field as 0, and the payload */
	u32 records;
};

enum tf_tail { TF_TAIL_NONE = 0, TF_TAIL_STRING = 1, TF_TAIL_STACK = 2, TF_TAIL_OPAQUE = 3 };
enum tf_coding { TF_DELTA = 0, TF_DICT = 1, TF_DELTA_TID = 2, TF_PLAIN = 3, TF_CODING_MAX = 4 };

struct tf_type {
	bool present; /* the file has it */
	u8 known; /* fields of it in our own table, 0 for a type we do not know */
	u8 tail;
	u8 nr_fields;
	u8 key; /* the field tid, TF_NO_KEY: none */
	u8 size[TF_FIELDS_MAX];
	u8 coding[TF_FIELDS_MAX];
};

struct tf_schema {
	struct tf_type type[TF_TYPES];
};

struct tf_cursor {
	const u8 *p;
	const u8 *end;
};

/* Column 0 to 2 of a type are fields of the record header, then come its own. */
#define TF_HDR_COLUMNS 3
#define SEQ_COLUMN     1

struct tf_column {
	u16 offset; /* in the record */
	u8 size;
	u8 coding;
};

static inline struct tf_column tf_column_of(const struct tf_type *t, unsigned int i, u16 offset)
{
	static const struct tf_column hdr[TF_HDR_COLUMNS] = {
		{offsetof(struct mp_hdr, space), 4, TF_DELTA},
		{offsetof(struct mp_hdr, seq), 8, TF_DELTA},
		{offsetof(struct mp_hdr, time_ns), 8, TF_DELTA},
	};

	if (i < TF_HDR_COLUMNS)
		return hdr[i];
	i -= TF_HDR_COLUMNS;
	return (struct tf_column){offset, t->size[i], t->coding[i]};
}

struct tf_encoder;
struct tf_decoder;

u32 tf_block_crc(const struct tf_block_hdr *h, const u8 *payload);
u32 tf_file_crc(const struct tf_file_hdr *h, const u8 *more, size_t len);

/* Our own table as a schema block's content; returns its length or -errno. */
int tf_schema_encode(u8 *buf, size_t cap);
int tf_schema_decode(const u8 *buf, size_t len, struct tf_schema *s);

/* Upper bound of what a record adds to a block; first: no other of its type is in it. */
size_t tf_worst(const struct mp_hdr *rec, bool first);
/* 0 when rec is a record of our table with the size its counts say. */
int tf_check(const struct mp_hdr *rec);
/* Bytes of the tail by the counts in the body, or -1 when the counts are out of range. */
s64 tf_tail_size(const struct mp_hdr *rec);

struct tf_encoder *tf_encoder_new(void);
/* Codes nr records that lie behind each other; returns the length. out has room for the sum of
 * their tf_worst(). */
size_t tf_encode(struct tf_encoder *e, const struct tf_schema *s, const u8 *recs, u32 nr, u8 *out);

struct tf_decoder *tf_decoder_new(void);
void tf_decoder_free(struct tf_decoder *d);
/* Which records are decoded from now on: none of type bulk, or no others; bulk 0: all. */
void tf_decoder_select(struct tf_decoder *d, u16 bulk, bool only);
/* Lowest number among the bulk records that were left out of the block; ~0: none. */
u64 tf_decoder_lowest(const struct tf_decoder *d);
/* The bulk records of the block; returns how many. */
u32 tf_decoder_bulk(const struct tf_decoder *d, const struct mp_hdr **ret_first);
/* Takes a block; raw must stay until its last record was read. 0, -EBADMSG or -ENOMEM. */
int tf_decode_block(struct tf_decoder *d, const struct tf_schema *s, const u8 *raw, size_t len,
		    u32 records);
/* 1 *ret_rec, valid until the next call; 0 a record of an unknown type; -ENODATA the end of the
 * block; -EBADMSG. */
int tf_decode(struct tf_decoder *d, const struct tf_schema *s, const struct mp_hdr **ret_rec);

static inline size_t tf_align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Strings of the writer: text to id. */
struct tf_strings;
struct tf_strings *tf_strings_new(void);
void tf_strings_free(struct tf_strings *s);
u32 tf_strings_find(const struct tf_strings *s, const char *text, u32 len);
/* Make sure that one tf_strings_add() cannot fail. */
int tf_strings_reserve(struct tf_strings *s, const char *text, u32 len);
void tf_strings_add(struct tf_strings *s);
const char *tf_strings_text(const struct tf_strings *s, u32 id); /* NULL: no such id */
u32 tf_strings_nr(const struct tf_strings *s);

/* create.c: a locked, empty file that may become path. An fd or -errno. */
int trace_create(const char *path);
/* It becomes path, and what was path becomes path.old. Only while its fd is open. */
int trace_publish(const char *path);
/* It goes away; before its fd is closed. */
void trace_discard(const char *path);

#endif
