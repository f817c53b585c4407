/* SPDX-License-Identifier: GPL-2.0-only
 * The layout is that of perf.data-file-format.txt and perf_event_open(2). */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/perf/perfdata.h"

#define MAGIC	      "PERFILE2"
#define MAGIC_SWAPPED "2ELIFREP"
#define PIPE_HEADER   16u
#define FILE_HEADER   104u
#define ATTR_MIN      64u /* PERF_ATTR_SIZE_VER0 */
#define ATTR_MAX      4096u
#define MAX_ATTRS     4096u
#define MAX_IDS	      (1u << 20)
#define MAX_PLAIN     (64ul << 20) /* of one compressed record */

/* perf's own records, behind the kernel's. */
enum {
	HEADER_ATTR = 64,
	HEADER_TRACING_DATA = 66,
	AUXTRACE = 71,
	COMPRESSED = 81,
	COMPRESSED2 = 83
};

/* Newer than some headers. */
#define SAMPLE_WEIGHT_STRUCT (1ull << 24)
#define FORMAT_LOST	     (1ull << 4)
#define BRANCH_HW_INDEX	     (1ull << 17)
#define BRANCH_COUNTERS	     (1ull << 19)

struct attr {
	u64 type, read_format, branch, regs_user, regs_intr;
	int monotonic;
};

struct id {
	u64 id;
	u32 attr;
};

struct reader {
	FILE *f;
	struct attr *attrs;
	u32 nr_attrs;
	struct id *ids;
	u32 nr_ids;
	int sorted;
	ZSTD_DStream *zstd;
	u8 *plain; /* of compressed records: what is not parsed yet */
	size_t plain_len, plain_cap;
	u8 record[65536];
	int (*each)(void *ctx, const struct perf_sample *s);
	void *ctx;
	struct perf_info *info;
	char *msg;
	size_t msg_len;
};

static int bad(struct reader *r, const char *what)
{
	snprintf(r->msg, r->msg_len, "%s", what);
	return -EBADMSG;
}

/* ---- a record's bytes ---- */

struct cursor {
	const u8 *at;
	size_t len;
	int over; /* more was asked for than there is */
};

static void skip(struct cursor *c, u64 n)
{
	if (n > c->len) {
		c->over = 1;
		n = c->len;
	}
	c->at += n;
	c->len -= n;
}

static u64 word(struct cursor *c)
{
	u64 v = 0;

	if (c->len >= sizeof(v))
		memcpy(&v, c->at, sizeof(v));
	skip(c, sizeof(v));
	return v;
}

static u32 half(struct cursor *c)
{
	u32 v = 0;

	if (c->len >= sizeof(v))
		memcpy(&v, c->at, sizeof(v));
	skip(c, sizeof(v));
	return v;
}

/* n things of this size; a count that cannot fit does not wrap. */
static void skip_all(struct cursor *c, u64 n, u64 size)
{
	skip(c, n > c->len ? ~0ull : n * size);
}

/* ---- attributes ---- */

static int by_id(const void *a, const void *b)
{
	const struct id *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int add_attr(struct reader *r, const u8 *raw, size_t len)
{
	struct perf_event_attr attr = {0};
	struct attr *more;

	if (r->nr_attrs == MAX_ATTRS)
		return bad(r, "too many events");
	more = realloc(r->attrs, (r->nr_attrs + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->attrs = more;
	memcpy(&attr, raw, len < sizeof(attr) ? len : sizeof(attr));
	r->attrs[r->nr_attrs++] = (struct attr){
		.type = attr.sample_type,
		.read_format = attr.read_format,
		.branch = attr.branch_sample_type,
		.regs_user = attr.sample_regs_user,
		.regs_intr = attr.sample_regs_intr,
		.monotonic = attr.use_clockid && attr.clockid == CLOCK_MONOTONIC,
	};
	return 0;
}

static int add_ids(struct reader *r, struct cursor *c)
{
	size_t n = c->len / 8;
	struct id *more;

	if (n > MAX_IDS - r->nr_ids)
		return bad(r, "too many event ids");
	more = realloc(r->ids, (r->nr_ids + n + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->ids = more;
	while (c->len >= 8)
		r->ids[r->nr_ids++] = (struct id){.id = word(c), .attr = r->nr_attrs - 1};
	r->sorted = 0;
	return 0;
}

/* Where the id of a sample is must be known before its event is: perf gives all of a file the same
 * place. */
static const struct attr *attr_of(struct reader *r, const struct cursor *sample)
{
	const u64 before[] = {PERF_SAMPLE_IP, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_SAMPLE_ADDR};
	struct cursor c = *sample;
	struct id key, *found;
	u64 type;
	size_t i;

	if (!r->nr_attrs)
		return NULL;
	if (r->nr_attrs == 1)
		return r->attrs;
	type = r->attrs[0].type;
	for (i = 0; !(type & PERF_SAMPLE_IDENTIFIER) && i < 4; i++)
		if (type & before[i])
			word(&c);
	if (!(type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return NULL;
	key.id = word(&c);
	if (!r->sorted && r->nr_ids)
		qsort(r->ids, r->nr_ids, sizeof(*r->ids), by_id);
	r->sorted = 1;
	found = r->nr_ids ? bsearch(&key, r->ids, r->nr_ids, sizeof(*r->ids), by_id) : NULL;
	return found ? &r->attrs[found->attr] : NULL;
}

/* ---- samples ---- */

static void skip_read(struct cursor *c, u64 format)
{
	u64 each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & FORMAT_LOST), n = 1;

	if (format & PERF_FORMAT_GROUP)
		n = word(c);
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		word(c);
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		word(c);
	skip_all(c, n, 8 * each);
}

static void skip_branches(struct cursor *c, u64 branch)
{
	u64 n = word(c);

	if (branch & BRANCH_HW_INDEX)
		word(c);
	skip_all(c, n, 24);
	if (branch & BRANCH_COUNTERS)
		skip_all(c, n, 8);
}

static void skip_regs(struct cursor *c, u64 mask)
{
	if (word(c))
		skip(c, 8 * (u64)__builtin_popcountll(mask));
}

static void skip_stack(struct cursor *c)
{
	u64 n = word(c);

	skip(c, n);
	if (n)
		word(c);
}

static void decode(struct cursor *c, const struct attr *a, struct perf_sample *s)
{
	u64 t = a->type;

	if (t & PERF_SAMPLE_IDENTIFIER)
		word(c);
	if (t & PERF_SAMPLE_IP)
		s->ip = word(c);
	if (t & PERF_SAMPLE_TID) {
		s->pid = half(c);
		s->tid = half(c);
	}
	if (t & PERF_SAMPLE_TIME)
		s->time_ns = word(c);
	if (t & PERF_SAMPLE_ADDR)
		s->addr = word(c);
	if (t & PERF_SAMPLE_ID)
		word(c);
	if (t & PERF_SAMPLE_STREAM_ID)
		word(c);
	if (t & PERF_SAMPLE_CPU)
		word(c);
	if (t & PERF_SAMPLE_PERIOD)
		word(c);
	if (t & PERF_SAMPLE_READ)
		skip_read(c, a->read_format);
	if (t & PERF_SAMPLE_CALLCHAIN)
		skip_all(c, word(c), 8);
	if (t & PERF_SAMPLE_RAW)
		skip(c, half(c));
	if (t & PERF_SAMPLE_BRANCH_STACK)
		skip_branches(c, a->branch);
	if (t & PERF_SAMPLE_REGS_USER)
		skip_regs(c, a->regs_user);
	if (t & PERF_SAMPLE_STACK_USER)
		skip_stack(c);
	if (t & PERF_SAMPLE_WEIGHT)
		s->weight = word(c);
	else if (t & SAMPLE_WEIGHT_STRUCT)
		s->weight = (u32)word(c); /* the first of three: the latency */
	if (t & PERF_SAMPLE_DATA_SRC)
		s->data_src = word(c);
	if (t & PERF_SAMPLE_TRANSACTION)
		word(c);
	if (t & PERF_SAMPLE_REGS_INTR)
		skip_regs(c, a->regs_intr);
	if (t & PERF_SAMPLE_PHYS_ADDR)
		s->phys_addr = word(c);
	s->has = (t & PERF_SAMPLE_ADDR ? PERF_HAS_ADDR : 0) |
		 (t & (PERF_SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT) ? PERF_HAS_WEIGHT : 0) |
		 (t & PERF_SAMPLE_DATA_SRC ? PERF_HAS_DATA_SRC : 0) |
		 (t & PERF_SAMPLE_PHYS_ADDR ? PERF_HAS_PHYS_ADDR : 0) |
		 (t & PERF_SAMPLE_TIME ? PERF_HAS_TIME : 0);
}

static int sample(struct reader *r, struct cursor c)
{
	const struct attr *a = attr_of(r, &c);
	struct perf_sample s = {0};

	if (!a)
		return bad(r, "a sample of an event that the file does not describe");
	decode(&c, a, &s);
	if (c.over)
		return bad(r, "a sample is shorter than its event says");
	r->info->samples++;
	r->info->monotonic &= a->monotonic;
	return r->each(r->ctx, &s);
}

/* ---- records ---- */

static int event_attr(struct reader *r, struct cursor c)
{
	u32 size;
	int err;

	if (c.len < 8)
		return bad(r, "an event's description is cut off");
	memcpy(&size, c.at + 4, sizeof(size));
	if (size < ATTR_MIN || size > c.len)
		return bad(r, "an event's description is cut off");
	err = add_attr(r, c.at, size);
	skip(&c, size);
	return err ? err : add_ids(r, &c);
}

static int record(struct reader *r, u32 type, struct cursor c, int depth);

/* Records one behind the other; *ret_used: what the whole ones of them take. */
static int records(struct reader *r, const u8 *at, size_t len, size_t *ret_used)
{
	struct perf_event_header h;
	size_t used = 0;
	int err = 0;

	while (!err && len - used >= sizeof(h)) {
		memcpy(&h, at + used, sizeof(h));
		if (h.size < sizeof(h))
			return bad(r, "a record is shorter than its header");
		if (h.size > len - used)
			break;
		err = record(
			r, h.type,
			(struct cursor){.at = at + used + sizeof(h), .len = h.size - sizeof(h)}, 1);
		used += h.size;
	}
	*ret_used = used;
	return err;
}

/* One stream through all of them: a record of the plain text may begin in one and end in the next.
 */
static int compressed(struct reader *r, struct cursor c)
{
	ZSTD_inBuffer in = {.src = c.at, .size = c.len};
	size_t used, n;
	int err = 0;

	if (!r->zstd)
		r->zstd = ZSTD_createDStream();
	if (!r->zstd)
		return -ENOMEM;
	do {
		ZSTD_outBuffer out;

		if (r->plain_cap - r->plain_len < (1u << 17)) {
			size_t cap = r->plain_cap + (1u << 20);
			u8 *more = cap > MAX_PLAIN ? NULL : realloc(r->plain, cap);

			if (!more)
				return cap > MAX_PLAIN ? bad(r, "a record that has no end")
						       : -ENOMEM;
			r->plain = more;
			r->plain_cap = cap;
		}
		out = (ZSTD_outBuffer){.dst = r->plain + r->plain_len,
				       .size = r->plain_cap - r->plain_len};
		n = ZSTD_decompressStream(r->zstd, &out, &in);
		if (ZSTD_isError(n))
			return bad(r, "its compressed part cannot be read");
		r->plain_len += out.pos;
		err = records(r, r->plain, r->plain_len, &used);
		if (err)
			return err;
		memmove(r->plain, r->plain + used, r->plain_len - used);
		r->plain_len -= used;
		n = out.pos == out.size; /* there may be more that did not fit */
	} while (in.pos < in.size || n);
	return 0;
}

static int compressed2(struct reader *r, struct cursor c)
{
	u64 size = word(&c);

	if (c.over || size > c.len)
		return bad(r, "a compressed record is cut off");
	c.len = size;
	return compressed(r, c);
}

static int record(struct reader *r, u32 type, struct cursor c, int depth)
{
	switch (type) {
	case PERF_RECORD_SAMPLE:
		return sample(r, c);
	case PERF_RECORD_LOST: /* id, lost */
		word(&c);
		r->info->lost += word(&c);
		return 0;
	case PERF_RECORD_LOST_SAMPLES:
		r->info->lost += word(&c);
		return 0;
	case PERF_RECORD_THROTTLE:
		r->info->throttled++;
		return 0;
	case HEADER_ATTR:
		return event_attr(r, c);
	case COMPRESSED:
		return depth ? bad(r, "compressed twice") : compressed(r, c);
	case COMPRESSED2:
		return depth ? bad(r, "compressed twice") : compressed2(r, c);
	default:
		return 0;
	}
}

/* Bytes behind a record that its size does not count. */
static int pass_over(struct reader *r, u64 n, u64 *left)
{
	char buf[4096];
	size_t len;

	if (n > *left)
		return bad(r, "it ends inside a record");
	*left -= n;
	for (; n; n -= len) {
		len = n < sizeof(buf) ? (size_t)n : sizeof(buf);
		if (fread(buf, 1, len, r->f) != len)
			return bad(r, "it ends inside a record");
	}
	return 0;
}

static int trailer(struct reader *r, u32 type, struct cursor c, u64 *left)
{
	if (type == HEADER_TRACING_DATA)
		return pass_over(r, ((u64)half(&c) + 7) & ~7ull, left);
	if (type == AUXTRACE)
		return pass_over(r, word(&c), left);
	return 0;
}

/* left: bytes of the data, ~0 up to the end of the file. */
static int all_records(struct reader *r, u64 left)
{
	struct perf_event_header h;
	int to_end = left == ~0ull, err = 0;
	struct cursor c;
	size_t n;

	while (!err && left) {
		n = fread(&h, 1, sizeof(h), r->f);
		if (!n && to_end)
			break;
		if (n != sizeof(h) || h.size < sizeof(h) || h.size > left)
			return bad(r, "it ends inside a record");
		c = (struct cursor){.at = r->record, .len = h.size - sizeof(h)};
		if (fread(r->record, 1, c.len, r->f) != c.len)
			return bad(r, "it ends inside a record");
		left -= h.size;
		err = record(r, h.type, c, 0);
		if (!err)
			err = trailer(r, h.type, c, &left);
	}
	if (!err && r->plain_len)
		err = bad(r, "its compressed part ends inside a record");
	return err;
}

/* ---- the two headers ---- */

static int file_ids(struct reader *r, u64 offset, u64 size)
{
	struct cursor c = {.len = size};
	off_t back = ftello(r->f);
	u8 *raw;
	int err = 0;

	if (size > MAX_IDS * 8ull)
		return bad(r, "too many event ids");
	raw = malloc(size + 1);
	if (!raw)
		return -ENOMEM;
	if (fseeko(r->f, (off_t)offset, SEEK_SET) || fread(raw, 1, size, r->f) != size ||
	    fseeko(r->f, back, SEEK_SET))
		err = bad(r, "its event ids lie outside of it");
	c.at = raw;
	if (!err)
		err = add_ids(r, &c);
	free(raw);
	return err;
}

static int file_attrs(struct reader *r, u64 each, u64 offset, u64 size)
{
	u8 raw[ATTR_MAX];
	u64 ids[2], i;
	int err = 0;

	if (each < ATTR_MIN + 16 || each > ATTR_MAX || size % each || size / each > MAX_ATTRS)
		return bad(r, "its events are described in an unknown way");
	if (fseeko(r->f, (off_t)offset, SEEK_SET))
		return bad(r, "it is a file in the middle of a pipe: say -o - to perf record");
	for (i = 0; !err && i < size / each; i++) {
		if (fread(raw, 1, each, r->f) != each)
			return bad(r, "its events are cut off");
		memcpy(ids, raw + each - sizeof(ids), sizeof(ids));
		err = add_attr(r, raw, each - sizeof(ids));
		if (!err)
			err = file_ids(r, ids[0], ids[1]);
	}
	return err;
}

static int read_file(struct reader *r)
{
	u64 h[FILE_HEADER / 8 - 2]; /* behind magic and size */
	int err;

	if (fread(h, 1, sizeof(h), r->f) != sizeof(h))
		return bad(r, "its header is cut off");
	err = file_attrs(r, h[0], h[1], h[2]);
	if (err)
		return err;
	if (fseeko(r->f, (off_t)h[3], SEEK_SET))
		return bad(r, "its data lies outside of it");
	/* A recorder that was killed did not get to say how much there is. */
	return all_records(r, h[4] ? h[4] : ~0ull);
}

static int start(struct reader *r)
{
	char magic[8];
	u64 size;

	if (fread(magic, 1, sizeof(magic), r->f) != sizeof(magic) ||
	    fread(&size, 1, sizeof(size), r->f) != sizeof(size))
		return bad(r, "it is too short for a perf.data file");
	if (!memcmp(magic, MAGIC_SWAPPED, 8)) {
		bad(r, "it is of a machine of the other byte order, and read there only");
		return -EPROTONOSUPPORT;
	}
	if (memcmp(magic, MAGIC, 8))
		return bad(r, "it is no perf.data file of perf 3.2 or later");
	if (size == PIPE_HEADER)
		return all_records(r, ~0ull);
	if (size < FILE_HEADER)
		return bad(r, "its header is of an unknown kind");
	return read_file(r);
}

int perfdata_read(int fd, int (*each)(void *ctx, const struct perf_sample *s), void *ctx,
		  struct perf_info *ret_info, char *msg, size_t msg_len)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r) {
		close(fd);
		return err;
	}
	*ret_info = (struct perf_info){.monotonic = 1};
	r->each = each;
	r->ctx = ctx;
	r->info = ret_info;
	r->msg = msg;
	r->msg_len = msg_len;
	r->f = fdopen(fd, "r");
	if (r->f)
		err = start(r);
	if (r->f)
		fclose(r->f);
	else
		close(fd);
	ret_info->monotonic &= ret_info->samples > 0;
	ZSTD_freeDStream(r->zstd);
	free(r->plain);
	free(r->attrs);
	free(r->ids);
	free(r);
	return err;
}
