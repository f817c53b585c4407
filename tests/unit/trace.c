/* SPDX-License-Identifier: GPL-2.0-only
 * Tests of the trace file: what is written comes back bit by bit, and what was damaged or cut never
 * comes back as something else. `trace dump FILE` prints a file as JSON lines through the C reader,
 * to be compared with tests/decoder/decode.py; `trace random FILE` and `trace fault FILE [N]` make
 * files, the second a stream like that of a busy recording, to measure bytes an event. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/trace/trace.h"

#define NR_RANDOM 100000
#define REC_MAX	  65528u

static char dir[] = "/tmp/memprov-trace.XXXXXX";
static char path[64], path2[64], path_old[80];
static int failed;

static void report(const char *name, int ok)
{
	printf("%s %s\n", ok ? "ok" : "FAIL", name);
	failed |= !ok;
}

static u64 rng_state = 88172645463325252ull;

static u64 rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state * 2685821657736338717ull;
}

/* Extremes as often as not: they are where a difference or a mask goes wrong. */
static u64 any_value(void)
{
	switch (rng() % 8) {
	case 0:
		return 0;
	case 1:
		return ~0ull;
	case 2:
		return 1ull << (rng() % 64);
	case 3:
		return (1ull << (rng() % 64)) - 1;
	case 4:
		return rng() % 1000;
	default:
		return rng();
	}
}

static u32 last_string; /* id of the last STRING made by make_record() */

static void make_tail(struct mp_hdr *rec, u8 *p)
{
	struct mp_ev_string *s = (struct mp_ev_string *)(rec + 1);
	struct mp_ev_stack *k = (struct mp_ev_stack *)(rec + 1);
	size_t tail = 0, raw, i;

	if (rec->type == MP_EV_STRING) {
		s->id = ++last_string;
		s->len = rng() % 64 ? rng() % 64 : (rng() & 1 ? MP_STRING_MAX : 0);
		tail = (s->len + 7) & ~7u;
		memset(p, 0, tail);
		for (i = 0; i < s->len; i++)
			p[i] = (u8)rng();
	} else if (rec->type == MP_EV_STACK) {
		k->n = rng() % 16 ? rng() % 20 : MP_STACK_DEPTH;
		k->raw = rng() % 16 ? 0 : rng() % 2000;
		raw = (k->raw + 7) & ~7u;
		tail = 8u * k->n + raw;
		for (i = 0; i < tail; i += 8) {
			u64 v = any_value();

			memcpy(p + i, &v, 8);
		}
	}
	rec->size = (u16)(rec->size + tail);
}

static u16 any_type(void)
{
	u16 type;

	do
		type = rng() % MP_EV_MAX;
	while (!trace_event_of(type));
	return type;
}

static void make_record(struct mp_hdr *rec)
{
	const struct trace_event *e;
	u8 *body = (u8 *)(rec + 1);
	unsigned int i;

	*rec = (struct mp_hdr){.type = any_type()};
	rec->space = (u32)any_value();
	rec->seq = any_value();
	rec->time_ns = any_value();
	e = trace_event_of(rec->type);
	rec->size = (u16)(sizeof(*rec) + e->size);
	for (i = 0; i < e->nr_fields; i++) {
		u64 v = any_value();

		memcpy(body + e->fields[i].offset, &v, e->fields[i].size);
	}
	make_tail(rec, body + e->size);
}

static void restart(u64 seed)
{
	rng_state = seed;
	last_string = 0;
}

/* A trace that has its name from the start. */
static int start(const char *to, u64 max, struct trace_writer **ret_w)
{
	int err = trace_writer_open(to, max, ret_w);

	return err ? err : trace_writer_publish(*ret_w);
}

static int write_random(const char *to, u64 seed, unsigned int nr)
{
	static u64 buf[REC_MAX / 8];
	struct trace_writer *w;
	unsigned int i;
	int err = start(to, 0, &w);

	restart(seed);
	for (i = 0; !err && i < nr; i++) {
		make_record((struct mp_hdr *)buf);
		err = trace_write(w, (struct mp_hdr *)buf);
		if (!err && i == nr / 2)
			err = trace_writer_flush(w);
	}
	return err ? err : trace_writer_close(&w);
}

/* How many records of the file equal those of write_random(); *ret is the reader's last word, or
 * 2 when a record differed. */
static unsigned int same_prefix(const char *from, u64 seed, int *ret, int *ret_cut)
{
	static u64 buf[REC_MAX / 8];
	const struct mp_hdr *rec, *want = (struct mp_hdr *)buf;
	struct trace_reader *r;
	unsigned int n = 0;

	*ret_cut = 0;
	*ret = trace_reader_open(from, &r);
	if (*ret)
		return 0;
	restart(seed);
	while ((*ret = trace_reader_next(r, &rec)) == 1) {
		make_record((struct mp_hdr *)buf);
		if (rec->size != want->size || memcmp(rec, want, want->size)) {
			*ret = 2;
			break;
		}
		n++;
	}
	*ret_cut = trace_reader_truncated(r);
	trace_reader_close(&r);
	return n;
}

static void test_round_trip(void)
{
	int ret, cut, err = write_random(path, 42, NR_RANDOM);
	unsigned int n = same_prefix(path, 42, &ret, &cut);

	report("round_trip", !err && n == NR_RANDOM && ret == 0 && !cut);
}

static size_t slurp(const char *from, u8 *buf, size_t cap)
{
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, cap);

	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : (size_t)n;
}

static int spill(const char *to, const u8 *buf, size_t len)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n = fd < 0 ? -1 : write(fd, buf, len);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)len ? 0 : -EIO;
}

static u8 small[1 << 16];
static size_t small_len;
#define SMALL_NR 40

static void test_truncation(void)
{
	unsigned int n, most = 0, uncut = 0;
	int ret, cut, ok = small_len > 0;
	size_t len;

	for (len = 0; ok && len < small_len; len++) {
		ok = !spill(path2, small, len);
		n = same_prefix(path2, 7, &ret, &cut);
		ok = ok && n < SMALL_NR && n >= most && (ret == 0 || ret == -EBADMSG);
		ok = ok && (len < 24 ? ret == -EBADMSG : ret == 0);
		uncut += !ret && !cut;
		most = n > most ? n : most;
	}
	if (!ok)
		fprintf(stderr, "at length %zu of %zu\n", len - 1, small_len);
	/* A cut between two blocks cannot be told from an end: behind the schema, behind the first.
	 */
	report("every_truncation", ok && most > 0 && uncut == 2);
}

/* A reader's buffers are large, and a sanitizer pays for each byte of them, each time: there every
 * ninth bit; the plain build flips them all. */
#ifdef __SANITIZE_ADDRESS__
#define FLIP_STEP 9
#else
#define FLIP_STEP 1
#endif

static void test_bit_flips(void)
{
	unsigned int n;
	int ret, cut, ok = small_len > 0;
	size_t i;

	for (i = 0; ok && i < 8 * small_len; i += FLIP_STEP) {
		small[i / 8] ^= (u8)(1u << (i % 8));
		ok = !spill(path2, small, small_len);
		small[i / 8] ^= (u8)(1u << (i % 8));
		n = same_prefix(path2, 7, &ret, &cut);
		/* Damage, or cut short where a length grew; the records before are the same. */
		ok = ok && ret != 2 && n < SMALL_NR && (ret < 0 || cut);
	}
	if (!ok)
		fprintf(stderr, "at bit %zu, ret %d\n", i - FLIP_STEP, ret);
	report("every_bit_flip", ok);
}

static void test_open(void)
{
	struct trace_writer *w = NULL, *w2 = NULL;
	char starting[sizeof(path) + 16];
	struct stat sb;
	int err, ret, cut;

	snprintf(starting, sizeof(starting), "%s.starting", path);

	err = write_random(path, 1, 10);
	err = err ? err : write_random(path, 2, 20);
	report("old_file_renamed", !err && same_prefix(path, 2, &ret, &cut) == 20 &&
					   same_prefix(path_old, 1, &ret, &cut) == 10);
	/* A recording that came to nothing costs none, and two at once do not start. */
	err = trace_writer_open(path, 0, &w);
	report("second_start_refused", !err && trace_writer_open(path, 0, &w2) == -EBUSY && !w2);
	report("unpublished_leaves_all",
	       !err && !trace_writer_close(&w) && same_prefix(path, 2, &ret, &cut) == 20 &&
		       same_prefix(path_old, 1, &ret, &cut) == 10 && access(starting, F_OK));
	/* Killed while it started: no obstacle. */
	spill(starting, small, small_len);
	err = write_random(path, 3, 30);
	report("stale_start_removed", !err && same_prefix(path, 3, &ret, &cut) == 30 &&
					      same_prefix(path_old, 2, &ret, &cut) == 20 &&
					      access(starting, F_OK));
	report("mode_0600", !stat(path, &sb) && (sb.st_mode & 07777) == 0600);
	unlink(path2);
	ret = symlink(path, path2);
	report("symlink_refused", !ret && trace_writer_open(path2, 0, &w) == -ELOOP && !w);
	unlink(path2);
	report("directory_refused", trace_writer_open(dir, 0, &w) == -EEXIST && !w);
}

static void test_foreign(void)
{
	static const char text[] = "#!/bin/sh\n# some other file, long enough for a header\n";
	struct trace_reader *r = NULL;

	spill(path2, (const u8 *)text, sizeof(text));
	report("foreign_file", trace_reader_open(path2, &r) == -EBADMSG && !r);
	spill(path2, NULL, 0);
	report("empty_file", trace_reader_open(path2, &r) == -EBADMSG && !r);
	report("no_directory_read", trace_reader_open(dir, &r) == -EBADMSG && !r);
	small[8]++;
	spill(path2, small, small_len);
	small[8]--;
	report("other_major", trace_reader_open(path2, &r) == -EPROTONOSUPPORT && !r);
}

struct small_rec {
	struct mp_hdr hdr;
	u64 body[8];
};

static void test_max_size(void)
{
	const u64 max = 100000;
	struct small_rec rec = {.hdr = {.type = MP_EV_FAULT}};
	struct trace_writer *w;
	const struct mp_hdr *got;
	struct trace_reader *r;
	struct stat sb;
	u64 n = 0, seen = 0;
	int err = start(path, max, &w), end_err;

	if (err) {
		report("max_size", 0);
		return;
	}
	rec.hdr.size = sizeof(struct mp_hdr) + sizeof(struct mp_ev_fault);
	while (!err) {
		rec.body[0] = rng();
		err = trace_write(w, &rec.hdr);
		n += !err;
	}
	report("max_size_refuses", err == -EFBIG && trace_writer_records(w) == n);
	rec.hdr.type = MP_EV_END;
	rec.hdr.size = sizeof(struct mp_hdr) + sizeof(struct mp_ev_end);
	end_err = trace_write(w, &rec.hdr);
	err = trace_writer_close(&w);
	report("max_size_leaves_room_for_end", !end_err && !err);
	report("max_size_kept",
	       !stat(path, &sb) && (u64)sb.st_size <= max && (u64)sb.st_size > max - 4096);
	err = trace_reader_open(path, &r);
	while (!err && trace_reader_next(r, &got) == 1)
		seen++;
	report("max_size_all_there", !err && seen == n + 1);
	if (!err)
		trace_reader_close(&r);
}

static void test_strings(void)
{
	static char longer[MP_STRING_MAX + 100];
	const struct mp_hdr *rec;
	struct trace_reader *r = NULL;
	struct trace_writer *w;
	int ok = !start(path, 0, &w);
	char text[16];
	unsigned int i;

	memset(longer, 'x', sizeof(longer) - 1);
	ok = ok && trace_string(w, NULL) == 0 && trace_string(w, "") == 0;
	for (i = 1; ok && i <= 1000; i++) {
		snprintf(text, sizeof(text), "text %u", i);
		ok = trace_string(w, text) == i && trace_string(w, text) == i;
	}
	ok = ok && trace_string(w, longer) == 1001 && trace_string(w, longer) == 1001;
	ok = ok && trace_writer_records(w) == 1001 && !trace_writer_close(&w);
	ok = ok && !trace_writer_close(&w); /* NULL-safe */
	ok = ok && !trace_reader_open(path, &r);
	for (i = 0; ok && trace_reader_next(r, &rec) == 1;)
		i++;
	ok = ok && i == 1001 && !strcmp(trace_reader_string(r, 7), "text 7") &&
	     strlen(trace_reader_string(r, 1001)) == MP_STRING_MAX && !trace_reader_string(r, 0) &&
	     !trace_reader_string(r, 1002);
	trace_reader_close(&r);
	report("strings", ok);
}

static void test_invalid(void)
{
	struct small_rec rec = {.hdr = {.type = 9, .size = 32}};
	struct mp_ev_string *s = (struct mp_ev_string *)rec.body;
	struct trace_writer *w;
	int ok = !start(path, 0, &w);

	if (!ok) {
		report("invalid_records", 0);
		return;
	}
	ok = trace_write(w, &rec.hdr) == -EINVAL; /* not in the table */
	rec.hdr.type = MP_EV_FAULT;
	ok = ok && trace_write(w, &rec.hdr) == -EINVAL; /* too short */
	rec.hdr.type = MP_EV_STRING;
	*s = (struct mp_ev_string){.id = 1, .len = 1};
	ok = ok && trace_write(w, &rec.hdr) == -EINVAL; /* no tail */
	rec.hdr.size = 40;
	s->id = 2;
	ok = ok && trace_write(w, &rec.hdr) == -EINVAL; /* not the next id */
	s->id = 1;
	s->len = MP_STRING_MAX + 1;
	ok = ok && trace_write(w, &rec.hdr) == -EINVAL;
	s->len = 1;
	ok = ok && trace_write(w, &rec.hdr) == 0 && !trace_writer_close(&w);
	report("invalid_records", ok);
}

static void print_text(const char *s, u32 len)
{
	printf(", \"text\": \"");
	for (; len--; s++) {
		u8 c = (u8)*s;

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_frames(const struct mp_ev_stack *k)
{
	const u64 *frame = (const u64 *)(k + 1);
	const u8 *raw = (const u8 *)(frame + k->n);
	unsigned int i;

	printf(", \"frames\": [");
	for (i = 0; i < k->n; i++)
		printf("%s\"0x%llx\"", i ? ", " : "", frame[i]);
	printf("], \"raw_bytes\": \"");
	for (i = 0; i < ((k->raw + 7) & ~7u); i++)
		printf("%02x", raw[i]);
	putchar('"');
}

static void print_record(const struct mp_hdr *rec)
{
	const struct trace_event *e = trace_event_of(rec->type);
	const u8 *body = (const u8 *)(rec + 1);
	unsigned int i;

	printf("{\"type\": \"%s\", \"space\": %u, \"seq\": %llu, \"time_ns\": %llu", e->name,
	       rec->space, rec->seq, rec->time_ns);
	for (i = 0; i < e->nr_fields; i++) {
		u64 v = 0;

		memcpy(&v, body + e->fields[i].offset, e->fields[i].size);
		printf(", \"%s\": %llu", e->fields[i].name, v);
	}
	if (rec->type == MP_EV_STRING)
		print_text((const char *)body + e->size, trace_body(rec, string)->len);
	if (rec->type == MP_EV_STACK)
		print_frames(trace_body(rec, stack));
	printf("}\n");
}

static int dump(const char *from)
{
	const struct mp_hdr *rec;
	struct trace_reader *r;
	int ret = trace_reader_open(from, &r);

	if (ret)
		return 1;
	while ((ret = trace_reader_next(r, &rec)) == 1)
		print_record(rec);
	trace_reader_close(&r);
	return ret < 0;
}

struct fault_source {
	struct trace_writer *w;
	u64 seq, t, next[8], stack[300];
};

static int put_record(struct fault_source *s, u16 type, const void *body)
{
	struct small_rec rec = {.hdr = {.type = type, .space = 1}};
	size_t size = trace_event_of(type)->size;

	memcpy(rec.body, body, size);
	rec.hdr.size = (u16)(sizeof(rec.hdr) + size);
	rec.hdr.seq = ++s->seq;
	rec.hdr.time_ns = s->t += 300 + rng() % 2000;
	return trace_write(s->w, &rec.hdr);
}

static int put_space(struct fault_source *s)
{
	struct mp_ev_space space = {.tgid = 4000};
	struct mp_ev_map map = {.stack = 1};
	int err = put_record(s, MP_EV_SPACE, &space);
	unsigned int i;

	for (i = 0; !err && i < 8; i++) {
		map.start = s->next[i];
		map.end = map.start + (1ull << 36);
		err = put_record(s, MP_EV_MAP, &map);
	}
	return err;
}

static int put_fault(struct fault_source *s)
{
	u64 tid = rng() % 8, a = rng() % 300, b = rng() % 300, c = rng() % 300;
	struct mp_ev_fault f = {.tid = (u32)(4000 + tid), .error_code = 6, .member = 1};

	a = a < b ? a : b;
	s->next[tid] += rng() % 16 ? 4096 : 4096 * (rng() % 512);
	f.addr = s->next[tid] + 8 * (rng() % 4 ? 0 : rng() % 512);
	f.stack = s->stack[a < c ? a : c];
	f.stall = 250 + rng() % 600;
	return put_record(s, MP_EV_FAULT, &f);
}

/* Eight threads first-touch a region of their own each, from 300 stacks of uneven heat. */
static int write_faults(const char *to, u64 nr)
{
	struct fault_source s = {.t = 5000000000000ull};
	int err = start(to, 0, &s.w);
	u64 i;

	if (err)
		return 1;
	for (i = 0; i < 300; i++)
		s.stack[i] = rng();
	for (i = 0; i < 8; i++)
		s.next[i] = 0x7f0000000000ull + (i << 36);
	err = put_space(&s);
	for (i = 0; !err && i < nr; i++)
		err = put_fault(&s);
	if (!err)
		err = trace_writer_flush(s.w);
	if (!err)
		printf("%.2f bytes an event\n", (double)trace_writer_bytes(s.w) / (double)nr);
	return trace_writer_close(&s.w) || err;
}

static int write_fault(struct trace_writer *w, u64 seq)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_fault ev;
	} rec = {.hdr = {.type = MP_EV_FAULT, .size = sizeof(rec), .space = 1, .seq = seq}};

	return trace_write(w, &rec.hdr);
}

/* The records of write_random() that are no faults; returns how many faults lay between them. */
static int faults_first_pass(struct trace_reader *r, unsigned int *ret_others)
{
	static u64 buf[REC_MAX / 8];
	const struct mp_hdr *rec, *want = (struct mp_hdr *)buf;
	int faults = 0, ret;

	*ret_others = 0;
	while ((ret = trace_reader_next(r, &rec)) == 1) {
		for (make_record((struct mp_hdr *)buf); want->type == MP_EV_FAULT; faults++)
			make_record((struct mp_hdr *)buf);
		if (rec->size != want->size || memcmp(rec, want, want->size))
			return -1;
		++*ret_others;
	}
	return ret ? -1 : faults;
}

/* How many of the second pass equal the faults of write_random(); -1: one did not. */
static int faults_second_pass(struct trace_reader *r)
{
	static u64 buf[REC_MAX / 8];
	const struct mp_hdr *rec, *want = (struct mp_hdr *)buf;
	u64 floor = trace_reader_floor(r);
	int faults = 0, ret;
	u32 nr;

	while ((ret = trace_reader_bulk(r, &rec, &nr)) == 1) {
		for (; nr; nr--, faults++) {
			do
				make_record((struct mp_hdr *)buf);
			while (want->type != MP_EV_FAULT);
			if (rec->size != want->size || memcmp(rec, want, want->size) ||
			    rec->seq < floor)
				return -1;
			rec = (const struct mp_hdr *)((const u8 *)rec + rec->size);
		}
		floor = trace_reader_floor(r);
	}
	return ret || floor != ~0ull ? -1 : faults;
}

static void test_two_passes(void)
{
	struct trace_reader *r = NULL;
	struct trace_writer *w = NULL;
	unsigned int others = 0;
	int first, second = -1, err = write_random(path, 42, NR_RANDOM);

	err = err ? err : trace_reader_open(path, &r);
	if (err) {
		report("two_passes", 0);
		return;
	}
	trace_reader_leave_out(r, MP_EV_FAULT);
	restart(42);
	first = faults_first_pass(r, &others);
	restart(42);
	if (!trace_reader_again(r))
		second = faults_second_pass(r);
	/* What follows the last other record is not counted by the first. */
	report("two_passes", second > 1000 && first <= second && second - first < 1000 &&
				     second + others == NR_RANDOM);
	trace_reader_close(&r);
	/* What is written in between is of neither. */
	unlink(path2); /* or it would be kept */
	err = start(path2, 0, &w);
	err = err ? err
		  : write_fault(w, 7) || trace_writer_flush(w) || trace_reader_open(path2, &r);
	if (!err) {
		const struct mp_hdr *rec;
		u32 nr = 0;

		trace_reader_leave_out(r, MP_EV_FAULT);
		err = trace_reader_next(r, &rec) || write_fault(w, 5) || trace_writer_flush(w) ||
		      trace_reader_again(r) || trace_reader_floor(r) != 7 ||
		      trace_reader_bulk(r, &rec, &nr) != 1 || nr != 1 || rec->seq != 7 ||
		      trace_reader_bulk(r, &rec, &nr);
		trace_reader_close(&r);
	}
	report("two_passes_of_a_file_that_grows", !err);
	trace_writer_close(&w);
}

static void run_tests(void)
{
	int err;

	test_round_trip();
	err = write_random(path, 7, SMALL_NR);
	small_len = err ? 0 : slurp(path, small, sizeof(small));
	test_truncation();
	test_bit_flips();
	test_open();
	test_foreign();
	test_max_size();
	test_strings();
	test_two_passes();
	test_invalid();
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "dump"))
		return dump(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "random"))
		return write_random(argv[2], 99, NR_RANDOM) != 0;
	if (argc >= 3 && !strcmp(argv[1], "fault"))
		return write_faults(argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000);
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/a", dir);
	snprintf(path2, sizeof(path2), "%s/b", dir);
	snprintf(path_old, sizeof(path_old), "%s.old", path);
	run_tests();
	unlink(path);
	unlink(path2);
	unlink(path_old);
	if (rmdir(dir) < 0)
		report("nothing_left_behind", 0);
	return failed;
}
