/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of the flight recorder's ring: what it lets go of is counted, in the right order, and
 * what it writes is a trace whose recorded time begins with its oldest picture.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/trace/ring.h"
#include "tests/unit/check.h"

#define SECOND 1000000000ull

static struct trace_ring *ring;
static u64 seq, now_ns;

static u64 rng(void)
{
	static u64 s = 88172645463325252ull;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s;
}

static int put(u16 type, u32 space, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[128];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .space = space,
			 .seq = ++seq,
			 .time_ns = now_ns}};

	memcpy(rec.body, body, len);
	return trace_ring_take(ring, &rec.hdr);
}

static int faults(u32 space, u32 n)
{
	int err = 0;

	while (n-- && !err) {
		struct mp_ev_fault f = {.addr = rng(), .stack = rng(), .stall = (u32)rng()};

		err = put(MP_EV_FAULT, space, &f, sizeof(f));
	}
	return err;
}

static int maps(u32 space, u32 n)
{
	int err = 0;

	while (n-- && !err) {
		struct mp_ev_map m = {.start = rng(), .end = rng(), .stack = rng()};

		err = put(MP_EV_MAP, space, &m, sizeof(m));
	}
	return err;
}

static int picture(u32 id)
{
	struct mp_ev_walk w = {.id = id};
	int err = put(MP_EV_WALK, 1, &w, sizeof(w));

	w.end = 1;
	return err ? err : put(MP_EV_WALK, 1, &w, sizeof(w));
}

static int begin(u64 size)
{
	struct mp_ev_space s = {.tgid = 7};
	struct mp_ev_window w = {0};
	int err;

	trace_ring_free(&ring);
	seq = 0;
	now_ns = SECOND;
	err = trace_ring_new(size, &ring);
	if (!err)
		err = put(MP_EV_SPACE, 1, &s, sizeof(s));
	if (!err)
		err = picture(1);
	return err ? err : put(MP_EV_WINDOW, 0, &w, sizeof(w));
}

/* What the written file holds. */
static struct {
	u32 count[MP_EV_MAX];
	u64 lost[MP_CLASS_MAX + 1], began, ended;
	u32 walks[8], nr_walks;
} seen;

static int read_back(const char *path)
{
	struct trace_reader *r = NULL;
	const struct mp_hdr *rec;
	int n = trace_reader_open(path, &r);

	memset(&seen, 0, sizeof(seen));
	while (!n && (n = trace_reader_next(r, &rec)) > 0) {
		const struct mp_ev_loss *l = trace_body(rec, loss);
		const struct mp_ev_walk *w = trace_body(rec, walk);

		n = 0;
		seen.count[rec->type]++;
		if (rec->type == MP_EV_LOSS && l->cls <= MP_CLASS_MAX)
			seen.lost[l->cls] += l->count;
		if (rec->type == MP_EV_WINDOW)
			*(trace_body(rec, window)->end ? &seen.ended : &seen.began) = rec->time_ns;
		if (rec->type == MP_EV_WALK && !w->end && seen.nr_walks < 8)
			seen.walks[seen.nr_walks++] = w->id;
	}
	trace_reader_close(&r);
	return n;
}

static int write_and_read(void)
{
	char path[] = "/tmp/memprov-ring-XXXXXX";
	int fd = mkstemp(path), err;
	struct trace_writer *w = NULL;

	if (fd < 0)
		return -errno;
	close(fd);
	unlink(path);
	err = trace_writer_open(path, 0, &w);
	if (!err)
		err = trace_ring_write(ring, w, now_ns);
	if (!err)
		err = trace_writer_publish(w);
	if (w && trace_writer_close(&w) && !err)
		err = -EIO;
	if (!err)
		err = read_back(path);
	unlink(path);
	return err;
}

static int with_room_nothing_is_lost(void)
{
	CHECK(!begin(64 << 20) && !maps(1, 1000) && !faults(1, 30000) && !write_and_read());
	CHECK(seen.count[MP_EV_FAULT] == 30000 && seen.count[MP_EV_MAP] == 1000);
	CHECK(!seen.count[MP_EV_LOSS] && seen.count[MP_EV_SPACE] == 1);
	CHECK(seen.began == SECOND && seen.ended == now_ns);
	return 1;
}

static int faults_go_before_calls_and_are_counted(void)
{
	CHECK(!begin(1 << 20) && !maps(1, 5000) && !faults(2, 100000) && !write_and_read());
	CHECK(seen.count[MP_EV_MAP] == 5000 && seen.count[MP_EV_FAULT] < 100000);
	CHECK(seen.count[MP_EV_FAULT] + seen.lost[MP_CLASS_PAGE] == 100000);
	CHECK(seen.lost[MP_CLASS_MAX] == seen.lost[MP_CLASS_PAGE]);
	CHECK(!seen.lost[MP_CLASS_MAP] && trace_ring_bytes(ring) <= 1 << 20);
	return 1;
}

static int calls_go_when_there_is_nothing_else(void)
{
	CHECK(!begin(1 << 20) && !maps(1, 100000) && !write_and_read());
	CHECK(seen.count[MP_EV_MAP] < 100000);
	CHECK(seen.count[MP_EV_MAP] + seen.lost[MP_CLASS_MAP] == 100000);
	CHECK(seen.count[MP_EV_SPACE] == 1 && seen.count[MP_EV_WALK] == 2);
	return 1;
}

static int time_begins_with_the_oldest_picture(void)
{
	u32 i;

	CHECK(!begin(64 << 20));
	for (i = 2; i <= 12; i++) {
		now_ns += 10 * SECOND;
		CHECK(!picture(i));
	}
	CHECK(!write_and_read());
	/* A minute back from picture 12, at 111 s, lies picture 6. */
	CHECK(seen.nr_walks == 7 && seen.walks[0] == 6 && seen.walks[6] == 12);
	CHECK(seen.began == 51 * SECOND && seen.ended == 111 * SECOND);
	return 1;
}

static int old_faults_are_no_loss_of_a_later_time(void)
{
	u32 i;

	CHECK(!begin(1 << 20) && !faults(1, 100000));
	for (i = 2; i <= 12; i++) {
		now_ns += 10 * SECOND;
		CHECK(!picture(i));
	}
	CHECK(!write_and_read() && !seen.count[MP_EV_LOSS]);
	return 1;
}

static int it_can_be_written_again(void)
{
	CHECK(!begin(1 << 20) && !faults(1, 1000) && !write_and_read());
	CHECK(seen.count[MP_EV_FAULT] == 1000 && !faults(1, 1000) && !write_and_read());
	CHECK(seen.count[MP_EV_FAULT] == 2000);
	return 1;
}

static const struct test tests[] = {
	TEST(with_room_nothing_is_lost),
	TEST(faults_go_before_calls_and_are_counted),
	TEST(calls_go_when_there_is_nothing_else),
	TEST(time_begins_with_the_oldest_picture),
	TEST(old_faults_are_no_loss_of_a_later_time),
	TEST(it_can_be_written_again),
};

int main(void)
{
	int failed = RUN(tests, NULL, NULL);

	trace_ring_free(&ring);
	return failed;
}
