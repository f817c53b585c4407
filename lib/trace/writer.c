/* SPDX-License-Identifier: GPL-2.0-only
 * Append-only writer of the trace file. Records are gathered in memory; a full block of them is
 * coded, compressed and goes out in one write(), so that a crash leaves whole blocks and at most
 * one torn one at the end, which the reader takes for the end. max_size is kept by an upper bound:
 * what is pending is written out early when only the bound, not the real size, would pass it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/trace/format.h"

#define ZSTD_LEVEL 3
/* Kept free below max_size so that a recording which hits it can still say so: LOSS and END. */
#define RESERVE 2048

struct trace_writer {
	int fd; /* -1: records go to sink, nothing is coded */
	int (*sink)(void *ctx, const struct mp_hdr *rec);
	void *sink_ctx;
	char *path; /* that the file does not have yet; NULL: it has */
	u64 max_size;
	u64 bytes;
	u64 nr_records;
	u32 nr_pending;
	size_t pending_len;
	size_t bound; /* upper bound of the pending records as a block */
	bool seen[TF_TYPES]; /* types of the pending records */
	u8 *pending; /* behind each other; a record is never longer than its bound */
	u8 *raw; /* a block before compression */
	u8 *out; /* block header and payload */
	ZSTD_CCtx *cctx;
	struct tf_strings *strings;
	struct tf_schema schema;
	struct tf_encoder *encoder;
};

/* A short write is continued; after an error the file ends where the last whole block did. */
static int write_out(struct trace_writer *w, const u8 *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;
	int err;

	while (done < len) {
		n = pwrite(w->fd, buf + done, len - done, (off_t)(w->bytes + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			/* A limit of the process (ulimit -f) or of the file system is no
			 * --max-size. */
			err = n >= 0 ? -EIO : errno == EFBIG ? -ENOSPC : -errno;
			/* Should this fail too, the torn block is still only a truncated end. */
			if (done && ftruncate(w->fd, (off_t)w->bytes) < 0)
				return err;
			return err;
		}
		done += (size_t)n;
	}
	w->bytes += len;
	return 0;
}

/* Compress raw behind a block header at out; returns the length of both, or -errno. */
static s64 make_block(struct trace_writer *w, u8 *out, u32 kind, size_t raw_len, u32 records)
{
	struct tf_block_hdr h = {.magic = TF_BLOCK_MAGIC, .kind = kind, .records = records};
	size_t n = ZSTD_compressCCtx(w->cctx, out + sizeof(h), TF_COMP_MAX, w->raw, raw_len,
				     ZSTD_LEVEL);

	if (ZSTD_isError(n))
		return -EIO;
	h.raw_len = (u32)raw_len;
	h.comp_len = (u32)n;
	h.crc = tf_block_crc(&h, out + sizeof(h));
	memcpy(out, &h, sizeof(h));
	return (s64)(sizeof(h) + n);
}

/* The file header and the schema go out together: a file has both or is no trace yet. */
static int write_start(struct trace_writer *w)
{
	struct tf_file_hdr h = {.magic = TF_MAGIC, .major = TF_MAJOR, .minor = TF_MINOR};
	int len = tf_schema_encode(w->raw, TF_RAW_MAX), err;
	s64 n;

	if (len < 0)
		return len;
	err = tf_schema_decode(w->raw, (size_t)len, &w->schema);
	if (err)
		return err;
	h.header_size = sizeof(h);
	h.crc = tf_file_crc(&h, NULL, 0);
	memcpy(w->out, &h, sizeof(h));
	n = make_block(w, w->out + sizeof(h), TF_KIND_SCHEMA, (size_t)len, 0);
	if (n < 0)
		return (int)n;
	if (w->max_size && (u64)n + sizeof(h) > w->max_size)
		return -EFBIG;
	return write_out(w, w->out, sizeof(h) + (size_t)n);
}

static void writer_free(struct trace_writer *w)
{
	if (w->path)
		trace_discard(w->path);
	free(w->path);
	if (w->fd >= 0)
		close(w->fd);
	tf_strings_free(w->strings);
	ZSTD_freeCCtx(w->cctx);
	free(w->encoder);
	free(w->pending);
	free(w->raw);
	free(w->out);
	free(w);
}

static struct trace_writer *writer_new(u64 max_size)
{
	struct trace_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = -1;
	w->max_size = max_size;
	w->pending = malloc(TF_RAW_MAX);
	w->raw = malloc(TF_RAW_MAX);
	w->out = malloc(sizeof(struct tf_file_hdr) + sizeof(struct tf_block_hdr) + TF_COMP_MAX);
	w->cctx = ZSTD_createCCtx();
	w->strings = tf_strings_new();
	w->encoder = tf_encoder_new();
	if (w->pending && w->raw && w->out && w->cctx && w->strings && w->encoder)
		return w;
	writer_free(w);
	return NULL;
}

int trace_writer_open(const char *path, u64 max_size, struct trace_writer **ret_w)
{
	struct trace_writer *w = writer_new(max_size);
	int err;

	if (!w)
		return -ENOMEM;
	w->fd = trace_create(path);
	err = w->fd < 0 ? w->fd : 0;
	if (!err)
		w->path = strdup(path);
	if (!err && !w->path) {
		trace_discard(path);
		err = -ENOMEM;
	}
	if (!err)
		err = write_start(w);
	if (err)
		writer_free(w);
	else
		*ret_w = w;
	return err;
}

int trace_writer_publish(struct trace_writer *w)
{
	int err = w->path ? trace_publish(w->path) : 0;

	if (!err) {
		free(w->path);
		w->path = NULL;
	}
	return err;
}

int trace_writer_sink(int (*sink)(void *ctx, const struct mp_hdr *rec), void *ctx,
		      struct trace_writer **ret_w)
{
	struct trace_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = -1;
	w->sink = sink;
	w->sink_ctx = ctx;
	w->strings = tf_strings_new();
	if (!w->strings) {
		free(w);
		return -ENOMEM;
	}
	*ret_w = w;
	return 0;
}

int trace_writer_flush(struct trace_writer *w)
{
	size_t len;
	s64 n;
	int err;

	if (!w->nr_pending)
		return 0;
	len = tf_encode(w->encoder, &w->schema, w->pending, w->nr_pending, w->raw);
	n = make_block(w, w->out, TF_KIND_RECORDS, len, w->nr_pending);
	if (n < 0)
		return (int)n;
	err = write_out(w, w->out, (size_t)n);
	if (err)
		return err; /* the block stays, a later flush may find room */
	w->nr_pending = 0;
	w->pending_len = w->bound = 0;
	memset(w->seen, 0, sizeof(w->seen));
	return 0;
}

static size_t bound_with(const struct trace_writer *w, const struct mp_hdr *rec)
{
	return w->bound + tf_worst(rec, !w->seen[rec->type]);
}

static bool fits(const struct trace_writer *w, const struct mp_hdr *rec)
{
	u64 reserve = rec->type == MP_EV_LOSS || rec->type == MP_EV_END ? 0 : RESERVE;
	u64 need = w->bytes + sizeof(struct tf_block_hdr) + ZSTD_compressBound(bound_with(w, rec)) +
		   reserve;

	return !w->max_size || need <= w->max_size;
}

static int make_room(struct trace_writer *w, const struct mp_hdr *rec)
{
	int err;

	if (w->nr_pending >= TF_BLOCK_FULL || bound_with(w, rec) > TF_RAW_MAX || !fits(w, rec)) {
		err = trace_writer_flush(w);
		if (err)
			return err;
	}
	return fits(w, rec) ? 0 : -EFBIG;
}

static void add_pending(struct trace_writer *w, const struct mp_hdr *rec)
{
	w->bound = bound_with(w, rec);
	w->seen[rec->type] = true;
	memcpy(w->pending + w->pending_len, rec, rec->size);
	w->pending_len += rec->size;
	w->nr_pending++;
}

static int reserve_string(struct trace_writer *w, const struct mp_hdr *rec)
{
	const struct mp_ev_string *b = trace_body(rec, string);

	if (b->id != tf_strings_nr(w->strings) + 1)
		return -EINVAL;
	return tf_strings_reserve(w->strings, (const char *)(b + 1), b->len);
}

int trace_write(struct trace_writer *w, const struct mp_hdr *rec)
{
	int err = tf_check(rec);

	if (!err && rec->type == MP_EV_STRING)
		err = reserve_string(w, rec);
	if (!err)
		err = w->sink ? w->sink(w->sink_ctx, rec) : make_room(w, rec);
	if (err)
		return err;
	if (!w->sink)
		add_pending(w, rec);
	w->nr_records++;
	if (rec->type == MP_EV_STRING)
		tf_strings_add(w->strings);
	return 0;
}

s64 trace_string(struct trace_writer *w, const char *s)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_string body;
		char text[MP_STRING_MAX];
	} rec;
	size_t len = s ? strnlen(s, MP_STRING_MAX) : 0;
	u32 id;
	int err;

	if (!len)
		return 0;
	id = tf_strings_find(w->strings, s, (u32)len);
	if (id)
		return id;
	id = tf_strings_nr(w->strings) + 1;
	rec.hdr = (struct mp_hdr){.type = MP_EV_STRING};
	rec.hdr.size = (u16)(sizeof(rec.hdr) + sizeof(rec.body) + tf_align8(len));
	rec.body = (struct mp_ev_string){.id = id, .len = (u32)len};
	memcpy(rec.text, s, len);
	memset(rec.text + len, 0, tf_align8(len) - len);
	err = trace_write(w, &rec.hdr);
	return err ? err : (s64)id;
}

const char *trace_writer_string(const struct trace_writer *w, u32 id)
{
	return tf_strings_text(w->strings, id);
}

u64 trace_writer_bytes(const struct trace_writer *w)
{
	return w->bytes;
}

u64 trace_writer_records(const struct trace_writer *w)
{
	return w->nr_records;
}

int trace_writer_close(struct trace_writer **w)
{
	int err;

	if (!*w)
		return 0;
	err = trace_writer_flush(*w);
	if ((*w)->fd >= 0 && fsync((*w)->fd) < 0 && !err && errno != EINVAL && errno != EROFS)
		err = -errno;
	writer_free(*w);
	*w = NULL;
	return err;
}
