/* SPDX-License-Identifier: GPL-2.0-only
 * The trace file: append-only blocks of records, zstd inside, a checksum on each. memprov-trace(5)
 * is the normative description; the reader checks every length once so that nobody else has to. */
#ifndef MP_TRACE_TRACE_H
#define MP_TRACE_TRACE_H

#include <stddef.h>
#include "bpf/shared/event.h"

struct trace_writer;
struct trace_reader;

/* Create a trace (0600, locked while it is written, no link followed) that trace_writer_publish()
 * gives its path; until then it is path.starting, and closing removes it. max_size in bytes, 0 no
 * limit. Returns 0 or -errno, which trace_create_strerror() explains; *ret_w is untouched on
 * failure. */
int trace_writer_open(const char *path, u64 max_size, struct trace_writer **ret_w);
/* What is written so far, and what follows, is at path now; an existing trace becomes path.old. */
int trace_writer_publish(struct trace_writer *w);
/* A writer without a file: each record goes to sink at once, a STRING before its first use. What
 * sink returns is what trace_write() returns. */
int trace_writer_sink(int (*sink)(void *ctx, const struct mp_hdr *rec), void *ctx,
		      struct trace_writer **ret_w);
const char *trace_create_strerror(int err);
/* Append one record. rec->size says how long it is. -EINVAL for a record that is not in the table
 * or has the wrong size, -EFBIG when max_size would be passed (the record is not written). */
int trace_write(struct trace_writer *w, const struct mp_hdr *rec);
/* Id of a string, writing a STRING record on first use. 0 for NULL and "". Longer than
 * MP_STRING_MAX is cut. Returns id >= 1, or -errno. */
s64 trace_string(struct trace_writer *w, const char *s);
/* Text of an id, NULL for one not given out. Lives as long as the writer. */
const char *trace_writer_string(const struct trace_writer *w, u32 id);
int trace_writer_flush(struct trace_writer *w); /* end the block and write it out */
u64 trace_writer_bytes(const struct trace_writer *w); /* bytes on disk so far */
u64 trace_writer_records(const struct trace_writer *w);
int trace_writer_close(struct trace_writer **w); /* flush, fsync, free; NULL-safe */

/* Open for reading. -EBADMSG: not a memprov trace; -EPROTONOSUPPORT: another major version;
 * -EILSEQ: the other byte order. */
int trace_reader_open(const char *path, struct trace_reader **ret_r);
/* The same from a descriptor, from the start of its file; the caller keeps fd. */
int trace_reader_open_fd(int fd, struct trace_reader **ret_r);
int trace_reader_dup(const struct trace_reader *r); /* a descriptor of the file, or -errno */
/* Why a trace cannot be read and what to do, for an -errno of these functions. */
const char *trace_strerror(int err);
/* Next record, valid until the next call. 1 a record, 0 the end, -errno a damaged file.
 * Records whose type is unknown are skipped and counted; shorter than the table's first size is
 * -EBADMSG; a tail that does not fit its counts is -EBADMSG. A file cut inside a block ends (0)
 * with trace_reader_truncated() true. */
int trace_reader_next(struct trace_reader *r, const struct mp_hdr **ret_rec);
/* A file in two passes, for who wants all other records before those of type bulk, which has no
 * tail. Called before the first record: trace_reader_next() leaves them out. */
void trace_reader_leave_out(struct trace_reader *r, u16 bulk);
/* At the end of that pass: now they are read, from the same part of the file. 0 or -errno. */
int trace_reader_again(struct trace_reader *r);
/* The next of them, *ret_nr of one size behind each other, valid until the next call. 1, 0 the end,
 * -errno as trace_reader_next(). */
int trace_reader_bulk(struct trace_reader *r, const struct mp_hdr **ret_first, u32 *ret_nr);
/* None that is still to come has a lower number. */
u64 trace_reader_floor(const struct trace_reader *r);
int trace_reader_truncated(const struct trace_reader *r);
u64 trace_reader_skipped(const struct trace_reader *r);
/* Text of a STRING id already passed, or NULL. Lives as long as the reader. */
const char *trace_reader_string(const struct trace_reader *r, u32 id);
void trace_reader_close(struct trace_reader **r);

/* Schema, expanded from event.def. */
struct trace_field {
	const char *name;
	const char *unit;
	const char *doc;
	u16 offset; /* in the body */
	u8 size;
};
struct trace_event {
	const char *name;
	const char *doc;
	const struct trace_field *fields;
	u16 nr_fields;
	u16 size; /* of the body */
};
/* NULL for a type that is not in the table. */
const struct trace_event *trace_event_of(u16 type);

/* The body behind a header. */
#define trace_body(rec, name) ((const struct mp_ev_##name *)((const struct mp_hdr *)(rec) + 1))

#endif
