/* SPDX-License-Identifier: GPL-2.0-only
 * Reader of the trace file, for files of any origin: the buffers have fixed sizes, a length is
 * compared with its limit before anything of that length is read, and nothing of a block is
 * believed before its checksum was right. The first block is the schema of the file; records are
 * decoded by it and cut down to the fields this program knows. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/trace/format.h"

struct trace_reader {
	int fd;
	int err; /* sticky: after damage nothing more is returned */
	bool end;
	bool truncated;
	bool have_schema;
	u64 skipped;
	u8 *raw;
	u8 *comp;
	ZSTD_DCtx *dctx;
	char **string; /* [id - 1] */
	u32 *string_len;
	u32 nr_strings;
	u32 cap_strings;
	struct tf_schema schema;
	struct tf_decoder *decoder;
	/* The two passes. */
	u16 bulk;
	bool again;
	u64 *floor; /* of a block's bulk records; in the second pass of all from it on */
	size_t nr_floors, cap_floors;
	size_t block; /* how many of records were read in this pass */
};

/* Bytes read, less than len only at the end of the file, or -errno. */
static s64 read_full(int fd, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (u8 *)buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (s64)done;
}

static int read_header(struct trace_reader *r)
{
	u8 more[TF_HEADER_MAX];
	struct tf_file_hdr h;
	size_t len;
	s64 n = read_full(r->fd, &h, sizeof(h));

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(h) || memcmp(h.magic, TF_MAGIC, sizeof(h.magic)))
		return -EBADMSG;
	/* Before the checksum: another major version may compute it in another way. */
	if (h.major == __builtin_bswap16(TF_MAJOR))
		return -EILSEQ;
	if (h.major != TF_MAJOR)
		return -EPROTONOSUPPORT;
	if (h.header_size < sizeof(h) || h.header_size > TF_HEADER_MAX)
		return -EBADMSG;
	len = h.header_size - sizeof(h);
	n = read_full(r->fd, more, len);
	if (n < 0)
		return (int)n;
	if ((size_t)n < len || tf_file_crc(&h, more, len) != h.crc)
		return -EBADMSG;
	return h.flags ? -EPROTONOSUPPORT : 0;
}

/* Takes fd, also on failure. */
static int reader_new(int fd, struct trace_reader **ret_r)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	struct stat sb;
	int err = -ENOMEM;

	if (!r) {
		close(fd);
		return err;
	}
	r->fd = fd;
	r->raw = malloc(TF_RAW_MAX);
	r->comp = malloc(TF_COMP_MAX);
	r->dctx = ZSTD_createDCtx();
	r->decoder = tf_decoder_new();
	if (r->raw && r->comp && r->dctx && r->decoder)
		err = fstat(r->fd, &sb) < 0 ? -errno : S_ISREG(sb.st_mode) ? 0 : -EBADMSG;
	if (!err && lseek(r->fd, 0, SEEK_SET) < 0)
		err = -errno;
	if (!err)
		err = read_header(r);
	if (err)
		trace_reader_close(&r);
	else
		*ret_r = r;
	return err;
}

int trace_reader_open(const char *path, struct trace_reader **ret_r)
{
	/* O_NONBLOCK: a FIFO by that name must not hang us before fstat() refuses it. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : reader_new(fd, ret_r);
}

static int dup_fd(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -errno : copy;
}

int trace_reader_open_fd(int fd, struct trace_reader **ret_r)
{
	int copy = dup_fd(fd);

	return copy < 0 ? copy : reader_new(copy, ret_r);
}

int trace_reader_dup(const struct trace_reader *r)
{
	return dup_fd(r->fd);
}

const char *trace_strerror(int err)
{
	const char *text;

	if (err == -EBADMSG)
		return "not a memprov trace, or damaged: record it again";
	if (err == -EPROTONOSUPPORT)
		return "written by another version of memprov: use that one to read it";
	if (err == -EILSEQ)
		return "written in the other byte order: no memprov writes that; record it again";
	if (err == -ENOENT)
		return "No such file or directory: record one with memprov record -o";
	if (err == -EACCES)
		return "Permission denied: a trace is its recorder's alone; use sudo or chown it";
	text = strerrordesc_np(-err);
	return text ? text : "unknown error";
}

static int unpack(struct trace_reader *r, const struct tf_block_hdr *h)
{
	size_t n = ZSTD_decompressDCtx(r->dctx, r->raw, h->raw_len, r->comp, h->comp_len);

	return ZSTD_isError(n) || n != h->raw_len ? -EBADMSG : 0;
}

/* One more block of records is read. */
static int note_block(struct trace_reader *r)
{
	r->block++;
	if (!r->bulk || r->again)
		return 0;
	if (r->nr_floors == r->cap_floors) {
		size_t cap = r->cap_floors ? 2 * r->cap_floors : 64;
		u64 *floor = realloc(r->floor, cap * sizeof(*floor));

		if (!floor)
			return -ENOMEM;
		r->floor = floor;
		r->cap_floors = cap;
	}
	r->floor[r->nr_floors++] = tf_decoder_lowest(r->decoder);
	return 0;
}

static int accept_block(struct trace_reader *r, const struct tf_block_hdr *h)
{
	int err;

	if (h->kind != TF_KIND_SCHEMA && h->kind != TF_KIND_RECORDS)
		return 0;
	/* One schema, in front of all records. */
	if ((h->kind == TF_KIND_SCHEMA) == r->have_schema)
		return -EBADMSG;
	if (h->kind == TF_KIND_SCHEMA && h->records)
		return -EBADMSG;
	err = unpack(r, h);
	if (err)
		return err;
	if (h->kind == TF_KIND_SCHEMA) {
		r->have_schema = true;
		return tf_schema_decode(r->raw, h->raw_len, &r->schema);
	}
	if (!h->records)
		return -EBADMSG;
	err = tf_decode_block(r->decoder, &r->schema, r->raw, h->raw_len, h->records);
	return err ? err : note_block(r);
}

/* One block: 1 taken or passed over, 0 the end, -errno. */
static int next_block(struct trace_reader *r)
{
	struct tf_block_hdr h;
	s64 n;
	int err;

	/* A file that is still written grows between the passes. */
	if (r->again && r->block == r->nr_floors)
		return 0;
	n = read_full(r->fd, &h, sizeof(h));
	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(h)) {
		r->truncated = n > 0 || !r->have_schema;
		return 0;
	}
	if (h.magic != TF_BLOCK_MAGIC || h.raw_len > TF_RAW_MAX || h.comp_len > TF_COMP_MAX ||
	    h.records > TF_BLOCK_RECORDS)
		return -EBADMSG;
	n = read_full(r->fd, r->comp, h.comp_len);
	if (n < 0)
		return (int)n;
	if (n < h.comp_len) {
		r->truncated = true;
		return 0;
	}
	if (tf_block_crc(&h, r->comp) != h.crc)
		return -EBADMSG;
	err = accept_block(r, &h);
	return err ? err : 1;
}

static int grow_strings(struct trace_reader *r)
{
	u32 cap = r->cap_strings ? 2 * r->cap_strings : 64;
	char **string;
	u32 *len;

	if (cap > 1u << 30)
		return -ENOMEM;
	string = realloc(r->string, cap * sizeof(*string));
	if (!string)
		return -ENOMEM;
	r->string = string;
	len = realloc(r->string_len, cap * sizeof(*len));
	if (!len)
		return -ENOMEM;
	r->string_len = len;
	r->cap_strings = cap;
	return 0;
}

/* Ids are dense, so the table grows with what was read, never with what an id claims. A text once
 * returned must stay: an id may come again only with the same text. */
static int take_string(struct trace_reader *r, const struct mp_hdr *rec)
{
	const struct mp_ev_string *b = trace_body(rec, string);
	char *s;
	int err;

	if (b->id == 0 || b->id > r->nr_strings + 1)
		return -EBADMSG;
	if (b->id <= r->nr_strings) {
		if (r->string_len[b->id - 1] != b->len ||
		    memcmp(r->string[b->id - 1], b + 1, b->len))
			return -EBADMSG;
		return 0;
	}
	if (r->nr_strings == r->cap_strings) {
		err = grow_strings(r);
		if (err)
			return err;
	}
	s = malloc((size_t)b->len + 1);
	if (!s)
		return -ENOMEM;
	memcpy(s, b + 1, b->len);
	s[b->len] = 0;
	r->string[r->nr_strings] = s;
	r->string_len[r->nr_strings++] = b->len;
	return 0;
}

static int next_record(struct trace_reader *r, const struct mp_hdr **ret_rec)
{
	int ret;

	while ((ret = tf_decode(r->decoder, &r->schema, ret_rec)) != 1) {
		if (ret == 0) {
			r->skipped++;
			continue;
		}
		if (ret == -ENODATA)
			ret = next_block(r);
		if (ret <= 0)
			return ret;
	}
	if ((*ret_rec)->type == MP_EV_STRING) {
		ret = take_string(r, *ret_rec);
		if (ret)
			return ret;
	}
	return 1;
}

int trace_reader_next(struct trace_reader *r, const struct mp_hdr **ret_rec)
{
	int ret;

	if (r->err || r->end)
		return r->err;
	ret = next_record(r, ret_rec);
	if (ret < 0)
		r->err = ret;
	else if (ret == 0)
		r->end = true;
	return ret;
}

void trace_reader_leave_out(struct trace_reader *r, u16 bulk)
{
	r->bulk = bulk;
	tf_decoder_select(r->decoder, bulk, false);
}

int trace_reader_again(struct trace_reader *r)
{
	size_t i;

	for (i = r->nr_floors; i-- > 1;)
		if (r->floor[i] < r->floor[i - 1])
			r->floor[i - 1] = r->floor[i];
	r->again = true;
	/* Without any there is nothing to go back for. */
	r->end = !r->nr_floors || r->floor[0] == ~0ull;
	r->block = 0;
	if (r->end)
		return 0;
	tf_decoder_select(r->decoder, r->bulk, true);
	r->have_schema = false;
	if (lseek(r->fd, 0, SEEK_SET) < 0)
		return -errno;
	return read_header(r);
}

int trace_reader_bulk(struct trace_reader *r, const struct mp_hdr **ret_first, u32 *ret_nr)
{
	size_t block = r->block;
	int ret = 0;

	while (!r->err && !r->end && (ret = next_block(r)) > 0) {
		if (r->block == block)
			continue; /* a block of another kind */
		block = r->block;
		*ret_nr = tf_decoder_bulk(r->decoder, ret_first);
		if (*ret_nr)
			return 1;
	}
	if (ret < 0)
		r->err = ret;
	r->end = true;
	return r->err;
}

u64 trace_reader_floor(const struct trace_reader *r)
{
	return r->block < r->nr_floors ? r->floor[r->block] : ~0ull;
}

int trace_reader_truncated(const struct trace_reader *r)
{
	return r->truncated;
}

u64 trace_reader_skipped(const struct trace_reader *r)
{
	return r->skipped;
}

const char *trace_reader_string(const struct trace_reader *r, u32 id)
{
	return id && id <= r->nr_strings ? r->string[id - 1] : NULL;
}

void trace_reader_close(struct trace_reader **rp)
{
	struct trace_reader *r = *rp;
	u32 i;

	if (!r)
		return;
	for (i = 0; i < r->nr_strings; i++)
		free(r->string[i]);
	free(r->string);
	free(r->string_len);
	free(r->floor);
	ZSTD_freeDCtx(r->dctx);
	tf_decoder_free(r->decoder);
	free(r->raw);
	free(r->comp);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
	*rp = NULL;
}
