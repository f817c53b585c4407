/* SPDX-License-Identifier: GPL-2.0-only
 * libFuzzer entry of the trace reader. The first byte of the input chooses: as it is; with magics
 * and checksums put right; or with the rest as the uncompressed contents of a schema and a record
 * block, which is how the decoder behind checksum and zstd is reached at all. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/trace/format.h"

#define INPUT_MAX (1u << 18)

static u8 file[4 * INPUT_MAX];
static u64 touched;

static void read_all(int fd)
{
	const struct mp_hdr *rec;
	struct trace_reader *r;
	char path[32];
	u16 i;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (trace_reader_open(path, &r))
		return;
	while (trace_reader_next(r, &rec) == 1) {
		/* Read every byte, so that the sanitizers see a size that is wrong. */
		for (i = 0; i < rec->size; i++)
			touched += ((const u8 *)rec)[i];
		/* What the reader lets through must be a record of our table. */
		if (tf_check(rec))
			abort();
		if (rec->type == MP_EV_STRING &&
		    !trace_reader_string(r, trace_body(rec, string)->id))
			abort();
	}
	touched += trace_reader_skipped(r) + (u64)trace_reader_truncated(r);
	trace_reader_close(&r);
}

/* The same in two passes. */
static void read_twice(int fd)
{
	const struct mp_hdr *rec;
	struct trace_reader *r;
	u32 nr, i, k;
	u64 floor;

	if (trace_reader_open_fd(fd, &r))
		return;
	trace_reader_leave_out(r, MP_EV_FAULT);
	while (trace_reader_next(r, &rec) == 1)
		if (rec->type == MP_EV_FAULT || tf_check(rec))
			abort();
	if (!trace_reader_again(r)) {
		floor = trace_reader_floor(r);
		while (trace_reader_bulk(r, &rec, &nr) == 1) {
			for (k = 0; k < nr; k++) {
				if (rec->type != MP_EV_FAULT || tf_check(rec) || rec->seq < floor)
					abort();
				for (i = 0; i < rec->size; i++)
					touched += ((const u8 *)rec)[i];
				rec = (const struct mp_hdr *)((const u8 *)rec + rec->size);
			}
			floor = trace_reader_floor(r);
		}
	}
	trace_reader_close(&r);
}

static void put_header(struct tf_file_hdr *h)
{
	memcpy(h->magic, TF_MAGIC, sizeof(h->magic));
	h->major = TF_MAJOR;
	h->header_size = sizeof(*h);
	h->flags = 0;
	h->crc = tf_file_crc(h, NULL, 0);
}

static void fix_checksums(u8 *buf, size_t len)
{
	struct tf_file_hdr fh;
	struct tf_block_hdr h;
	size_t at = sizeof(fh);

	if (len < at)
		return;
	memcpy(&fh, buf, sizeof(fh));
	put_header(&fh);
	memcpy(buf, &fh, sizeof(fh));
	while (len - at >= sizeof(h)) {
		memcpy(&h, buf + at, sizeof(h));
		if (h.comp_len > len - at - sizeof(h))
			return;
		h.magic = TF_BLOCK_MAGIC;
		h.crc = tf_block_crc(&h, buf + at + sizeof(h));
		memcpy(buf + at, &h, sizeof(h));
		at += sizeof(h) + h.comp_len;
	}
}

static size_t put_block(u8 *to, size_t cap, u32 kind, u32 records, const u8 *raw, size_t len)
{
	struct tf_block_hdr h = {TF_BLOCK_MAGIC, kind, (u32)len, 0, 0, records};
	size_t n = ZSTD_compress(to + sizeof(h), cap - sizeof(h), raw, len, 1);

	if (ZSTD_isError(n))
		abort();
	h.comp_len = (u32)n;
	h.crc = tf_block_crc(&h, to + sizeof(h));
	memcpy(to, &h, sizeof(h));
	return sizeof(h) + n;
}

/* data: number of records, own schema or ours, [its length,] contents. */
static size_t build(const u8 *data, size_t len)
{
	static u8 own[1 << 16];
	struct tf_file_hdr fh = {.minor = 1};
	const u8 *schema = own;
	size_t at = sizeof(fh), slen;
	u32 records;

	if (len < 4)
		return 0;
	records = data[0];
	if (data[1] & 1) {
		slen = data[2] | (size_t)data[3] << 8;
		schema = data + 4;
		if (slen > len - 4)
			slen = len - 4;
		data += slen;
		len -= slen;
	} else {
		slen = (size_t)tf_schema_encode(own, sizeof(own));
	}
	put_header(&fh);
	memcpy(file, &fh, sizeof(fh));
	at += put_block(file + at, sizeof(file) - at, TF_KIND_SCHEMA, 0, schema, slen);
	at += put_block(file + at, sizeof(file) - at, TF_KIND_RECORDS, records, data + 4, len - 4);
	return at;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t len);

int LLVMFuzzerTestOneInput(const u8 *data, size_t len)
{
	static int fd = -1;
	size_t n;

	if (len < 1 || len > INPUT_MAX)
		return 0;
	if (fd < 0)
		fd = memfd_create("trace", MFD_CLOEXEC);
	n = len - 1;
	if (data[0] % 3 == 2) {
		n = build(data + 1, n);
	} else {
		memcpy(file, data + 1, n);
		if (data[0] % 3 == 1)
			fix_checksums(file, n);
	}
	if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, file, n, 0) != (ssize_t)n)
		abort();
	read_all(fd);
	read_twice(fd);
	return 0;
}
