/* SPDX-License-Identifier: GPL-2.0-only
 * Unit test of the reader of perf.data, on a file put together here: what is in it comes out, and
 * no file that was cut off or changed in any place brings it down. The 95% intervals of what
 * samples estimate hold the truth as often as they say.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#include "lib/join/live.h"
#include "lib/perf/perfdata.h"
#include "tests/unit/check.h"

static char msg[128];
static u8 file[65536];
static size_t len;

/* ---- a file ---- */

static void add(const void *p, size_t n)
{
	memcpy(file + len, p, n);
	len += n;
}

static void add64(u64 v)
{
	add(&v, sizeof(v));
}

static void head(u32 type, u16 size)
{
	const struct perf_event_header h = {.type = type, .size = size};

	add(&h, sizeof(h));
}

#define KIND                                                                      \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | \
	 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |      \
	 PERF_SAMPLE_PHYS_ADDR)
#define SAMPLE_SIZE (8 + 4 * 8 + 2 * 8 + 3 * 8)

static void add_sample(u64 i)
{
	head(PERF_RECORD_SAMPLE, SAMPLE_SIZE);
	add64(0x400000 + i);
	add64(7 | 8ull << 32);
	add64(1000 + i);
	add64(0x7000 + i);
	add64(1);
	add64(0x400000);
	add64(10 * i);
	add64(i);
	add64(0x9000 + i);
}

static void add_attr(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .sample_type = KIND,
				       .use_clockid = 1,
				       .clockid = 1 /* CLOCK_MONOTONIC */};

	add(&attr, sizeof(attr));
}

static void make_file(u64 samples)
{
	u64 attr = sizeof(struct perf_event_attr) + 16, i;

	len = 0;
	add("PERFILE2", 8);
	add64(104);
	add64(attr);
	add64(104);
	add64(attr);
	add64(104 + attr);
	add64(samples * SAMPLE_SIZE + 24);
	for (i = 0; i < 6; i++)
		add64(0);
	add_attr();
	add64(0);
	add64(0);
	for (i = 0; i < samples; i++)
		add_sample(i);
	head(PERF_RECORD_LOST, 24);
	add64(0);
	add64(3);
}

static void make_pipe(u64 samples)
{
	u64 i;

	len = 0;
	add("PERFILE2", 8);
	add64(16);
	head(64, 8 + sizeof(struct perf_event_attr));
	add_attr();
	head(66, 16); /* tracing data: 12 bytes behind it, and 4 to fill up */
	add64(12);
	add64(~0ull);
	add64(~0ull);
	for (i = 0; i < samples; i++)
		add_sample(i);
}

/* The records of a pipe, but for the first, in two compressed ones that part in the middle of one.
 */
static void make_compressed(u64 samples)
{
	u8 plain[4096], packed[8192];
	ZSTD_CStream *z = ZSTD_createCStream();
	size_t n, i, parts[3] = {0, samples * SAMPLE_SIZE / 2 - 5, samples * SAMPLE_SIZE};

	make_pipe(samples);
	n = samples * SAMPLE_SIZE;
	memcpy(plain, file + len - n, n);
	len -= n;
	for (i = 0; i < 2; i++) {
		ZSTD_inBuffer in = {plain + parts[i], parts[i + 1] - parts[i], 0};
		ZSTD_outBuffer out = {packed, sizeof(packed), 0};

		ZSTD_compressStream2(z, &out, &in, ZSTD_e_flush);
		head(81, (u16)(8 + out.pos));
		add(packed, out.pos);
	}
	ZSTD_freeCStream(z);
}

/* ---- reading it ---- */

static u64 seen, wrong;

static int each(void *ctx, const struct perf_sample *s)
{
	u64 i = seen++;

	(void)ctx;
	wrong += s->ip != 0x400000 + i || s->pid != 7 || s->tid != 8 || s->time_ns != 1000 + i ||
		 s->addr != 0x7000 + i || s->weight != 10 * i || s->data_src != i ||
		 s->phys_addr != 0x9000 + i || s->has != 31;
	return 0;
}

static int read_it(struct perf_info *info)
{
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	seen = wrong = 0;
	msg[0] = 0;
	if (fd < 0 || write(fd, file, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET))
		abort();
	return perfdata_read(fd, each, NULL, info, msg, sizeof(msg));
}

static int what_is_in_it_comes_out(void)
{
	struct perf_info info;
	void (*const make[])(u64) = {make_file, make_pipe, make_compressed};
	u32 i;

	for (i = 0; i < 3; i++) {
		make[i](20);
		CHECK(!read_it(&info));
		CHECK(seen == 20 && !wrong && info.samples == 20 && info.monotonic);
		CHECK(info.lost == (i ? 0 : 3));
	}
	return 1;
}

static int another_byte_order_is_refused(void)
{
	struct perf_info info;

	make_file(1);
	memcpy(file, "2ELIFREP", 8);
	CHECK(read_it(&info) == -EPROTONOSUPPORT && strstr(msg, "byte order"));
	memcpy(file, "NOTPERF2", 8);
	CHECK(read_it(&info) == -EBADMSG && strstr(msg, "no perf.data"));
	return 1;
}

/* Cut off it is never taken for whole, but between two records of a pipe. */
static int cut_off_it_says_so(void)
{
	struct perf_info info;
	void (*const make[])(u64) = {make_file, make_pipe, make_compressed};
	size_t whole, n;
	u32 i;

	for (i = 0; i < 3; i++) {
		make[i](5);
		for (whole = len, n = 0; n < whole; n++) {
			int err;

			make[i](5);
			len = n;
			err = read_it(&info);
			CHECK(!wrong && seen <= 5 && (err ? msg[0] != 0 : i > 0));
		}
	}
	return 1;
}

static int changed_it_brings_nothing_down(void)
{
	struct perf_info info;
	void (*const make[])(u64) = {make_file, make_pipe, make_compressed};
	size_t whole, n;
	u32 i, bit;

	for (i = 0; i < 3; i++) {
		make[i](5);
		for (whole = len, n = 0; n < whole; n++)
			for (bit = 0; bit < 8; bit++) {
				int err;

				make[i](5);
				file[n] ^= (u8)(1u << bit);
				err = read_it(&info);
				CHECK(err ? err == -ENOMEM || msg[0] : 1);
			}
	}
	return 1;
}

/* ---- what they estimate ---- */

#define PG	MP_PAGE_SIZE
#define BASE	0x7f0000000000ull
#define SAMPLES 400u
#define ROUNDS	1000u
#define SHARE	30u /* of a hundred */

static struct replay *p;

static const char *no_text(const void *ctx, u32 id)
{
	(void)ctx;
	(void)id;
	return NULL;
}

static u32 rng(u32 below)
{
	static u64 s = 88172645463325252ull;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return (u32)((s >> 11) % below);
}

static void put(u64 seq, u16 type, u32 space, const void *body, size_t n)
{
	struct {
		struct mp_hdr hdr;
		u8 body[96];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + n),
			 .space = space,
			 .seq = seq,
			 .time_ns = seq}};

	memcpy(rec.body, body, n);
	if (replay_feed(p, &rec.hdr))
		abort();
}

/* Two mappings, of which one gets SHARE of the accesses, of 100 cycles on average. drift: none of
 * them in the second half. */
static struct report *estimate(int drift)
{
	const struct mp_ev_space space = {.tgid = 7, .cause = MP_SPACE_ATTACH};
	struct mp_ev_map m = {.seq_entry = 1};
	struct mp_ev_memsamples all = {.total = SAMPLES};
	struct mp_ev_walk w = {.id = 1};
	struct report *r = NULL;
	u32 i;

	if (replay_new(OWNER_AUTO, no_text, NULL, &p))
		abort();
	put(1, MP_EV_SPACE, 1, &space, sizeof(space));
	for (i = 0; i < 2; i++) {
		m.start = BASE + i * 64 * PG;
		m.end = m.start + 32 * PG;
		m.stack = 1000 + i;
		put(2 + i, MP_EV_MAP, 1, &m, sizeof(m));
	}
	put(4, MP_EV_WALK, 1, &w, sizeof(w));
	for (i = 0; i < 2; i++) {
		const struct mp_ev_vma v = {.start = BASE + i * 64 * PG,
					    .end = BASE + (i * 64 + 32) * PG,
					    .flags = MP_VMA_READ,
					    .walk = 1};

		put(4, MP_EV_VMA, 1, &v, sizeof(v));
	}
	w.end = 1;
	put(4, MP_EV_WALK, 1, &w, sizeof(w));
	for (i = 0; i < SAMPLES; i++) {
		const u32 other = rng(100) >= (drift && i >= SAMPLES / 2 ? 0 : SHARE);
		const struct mp_ev_memsample s = {.addr = BASE + other * 64 * PG + rng(32 * PG),
						  .weight = rng(201),
						  .pid = 7,
						  .has = 3};

		put(5, MP_EV_MEMSAMPLE, 0, &s, sizeof(s));
	}
	put(5, MP_EV_MEMSAMPLES, 0, &all, sizeof(all));
	if (replay_step(p, ~0ull) || replay_report(p, &r))
		abort();
	return r;
}

static const struct cost *of(const struct report *r, u64 stack, enum cost_id id)
{
	size_t i;

	for (i = 0; i < r->nr_rows; i++)
		if (r->rows[i].stack == stack)
			return &r->rows[i].cost[id];
	return NULL;
}

/* 99% of sets of 1,000 intervals that hold in 95 of 100 cases hold between 930 and 967 times. */
static int intervals_hold_as_often_as_they_say(void)
{
	const s64 truth = SAMPLES * SHARE / 100, cycles = truth * 100;
	u32 i, held = 0, held_cycles = 0, unranked = 0;

	for (i = 0; i < ROUNDS; i++) {
		struct report *r = estimate(0);
		const struct cost *n = of(r, 1000, COST_SAMPLES), *c = of(r, 1000, COST_LATENCY);

		if (!n || !c || n->sampled != cost_value(n) || r->samples.placed != SAMPLES)
			abort();
		held += cost_lo(n) <= truth && truth <= cost_hi(n);
		held_cycles += cost_lo(c) <= cycles && cycles <= cost_hi(c);
		unranked += r->samples.unranked != 0;
		join_free(&r);
		replay_free(&p);
	}
	printf("held %u and %u of %u, not ranked %u\n", held, held_cycles, i, unranked);
	CHECK(held >= 930 && held <= 975); /* whole numbers: a little wider */
	CHECK(held_cycles >= 930);
	CHECK(unranked <= 10);
	return 1;
}

static int halves_that_disagree_rank_nobody(void)
{
	struct report *r = estimate(1);
	int unranked = r->samples.unranked;

	join_free(&r);
	replay_free(&p);
	CHECK(unranked);
	return 1;
}

static const struct test tests[] = {
	TEST(what_is_in_it_comes_out),
	TEST(another_byte_order_is_refused),
	TEST(cut_off_it_says_so),
	TEST(changed_it_brings_nothing_down),
	TEST(intervals_hold_as_often_as_they_say),
	TEST(halves_that_disagree_rank_nobody),
};

int main(void)
{
	return RUN(tests, NULL, NULL);
}
