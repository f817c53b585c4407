/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/walk.h"
#include "lib/capture/calibrate.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/picture.h"
#include "lib/capture/refusal.h"
#include "walk.skel.h"

#define PAGE	   4096ul
#define HUGE	   (2ul << 20)
#define MADV_GUARD 102 /* MADV_GUARD_INSTALL, Linux 6.13 */

/* ---- measuring ---- */

/* A memfd page is the one page whose struct page the kernel's own types lead to. */
static int prepare(struct walk_bpf__bss *b)
{
	u32 i;

	for (i = 0; i < MP_CAL_PAGES; i++) {
		int fd = memfd_create("memprov-calibration", MFD_CLOEXEC);
		u64 *page = MAP_FAILED;

		if (fd >= 0 && !ftruncate(fd, PAGE))
			page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (fd >= 0)
			close(fd);
		if (page == MAP_FAILED)
			return -errno;
		if (getrandom(page, 8, 0) != 8)
			page[0] = 0x6d656d70726f76ull * (i + 3);
		b->cal_addr[i] = (u64)(unsigned long)page;
		b->cal_magic[i] = page[0];
		b->cal_pfn[i] = own_entry(page) & ((1ull << 55) - 1);
		if (!b->cal_pfn[i])
			return -EPERM;
	}
	return 0;
}

static void release(struct walk_bpf__bss *b)
{
	u32 i;

	for (i = 0; i < MP_CAL_PAGES; i++)
		if (b->cal_addr[i])
			munmap((void *)(unsigned long)b->cal_addr[i], PAGE);
}

static int visit_self(struct walk_bpf *skel)
{
	union bpf_iter_link_info info = {.task.tid = (__u32)getpid()};
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));
	struct bpf_link *link = bpf_program__attach_iter(skel->progs.calibrate, &opts);
	char buf[64];
	int fd, err = 0;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0)
		err = -errno;
	else {
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
	bpf_link__destroy(link);
	return err;
}

/* Physical address bits as the kernel uses them: without the bit that marks encrypted memory. */
static u64 frame_mask(void)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	unsigned int bits = 0;
	char line[8192];

	while (f && !bits && fgets(line, sizeof(line), f))
		if (sscanf(line, "address sizes : %u bits physical", &bits) != 1)
			bits = 0;
	if (f)
		fclose(f);
	return bits > 12 && bits <= 52 ? ((1ull << bits) - 1) & ~(PAGE - 1) : 0;
}

static int conclude(const struct walk_bpf__bss *b, struct calibration *c, char *msg, size_t len)
{
	u32 i;

	c->direct = b->cal_direct;
	c->frame_mask = frame_mask();
	if (!c->direct || !c->frame_mask) {
		snprintf(msg, len, "the kernel's direct map was not found");
		return -ENXIO;
	}
	c->levels = c->direct < 0xffff800000000000ull ? 5 : 4;
	c->vmemmap = b->cal_page[0] - b->cal_pfn[0] * b->cal_page_size;
	for (i = 0; i < MP_CAL_PAGES; i++)
		if (!b->cal_page[i] ||
		    c->vmemmap + b->cal_pfn[i] * b->cal_page_size != b->cal_page[i]) {
			snprintf(msg, len, "the kernel's page structs are not one array");
			return -ENXIO;
		}
	return 0;
}

int calibrate(struct calibration *ret_c, char *msg, size_t len)
{
	struct walk_bpf *skel = walk_bpf__open();
	int err;

	memset(ret_c, 0, sizeof(*ret_c));
	if (!skel)
		return -errno;
	bpf_program__set_autoload(skel->progs.walk_pass, false);
	err = walk_bpf__load(skel);
	if (err) {
		const char *lacks = refusal_lacks(REFUSAL_WALK);

		snprintf(msg, len, "the kernel %s %s",
			 lacks ? "has no" : "refused the calibration:",
			 lacks ? lacks : strerror(-err));
	} else {
		err = prepare(skel->bss);
		if (!err)
			err = visit_self(skel);
		if (err)
			snprintf(msg, len, "%s",
				 err == -EPERM ? "page frame numbers are hidden" : strerror(-err));
		else
			err = conclude(skel->bss, ret_c, msg, len);
		release(skel->bss);
	}
	walk_bpf__destroy(skel);
	return err;
}

/* ---- proving ---- */

/* One state a page can be in: how to make it, and what a picture must say of it. want 0: nothing.
 */
#define TOUCHED	  1
#define READ_ONLY 2
#define NO_ACCESS 4
#define GUARD	  8
#define PAGED_OUT 16
#define WANT_MASK (MP_PAGE_RESIDENT | MP_PAGE_SWAPPED | MP_PAGE_FILE)

static const struct part {
	const char *what;
	u32 pages, make, want;
} parts[] = {
	{"untouched", 16, 0, 0},
	{"written", 64, TOUCHED, MP_PAGE_RESIDENT},
	{"read only", 16, TOUCHED | READ_ONLY, MP_PAGE_RESIDENT},
	{"without access", 16, TOUCHED | NO_ACCESS, MP_PAGE_RESIDENT},
	{"guard", 8, GUARD, 0},
	{"never mapped without access", 8, NO_ACCESS, 0},
	{"paged out", 16, TOUCHED | PAGED_OUT, 0 /* swapped, where there is swap */},
	{"written behind", 8, TOUCHED, MP_PAGE_RESIDENT},
};
#define NR_PARTS (sizeof(parts) / sizeof(parts[0]))

struct page_state {
	u32 flags, mapcount, node;
	u64 pfn_id;
};

static void make(const struct part *part, u8 *at)
{
	size_t len = part->pages * PAGE, i;

	if (part->make & TOUCHED)
		for (i = 0; i < len; i += PAGE)
			at[i] = 1;
	if (part->make & READ_ONLY)
		mprotect(at, len, PROT_READ);
	if (part->make & NO_ACCESS)
		mprotect(at, len, PROT_NONE);
	if (part->make & GUARD)
		madvise(at, len, MADV_GUARD); /* where it is not known the pages stay untouched */
	if (part->make & PAGED_OUT)
		madvise(at, len, MADV_PAGEOUT);
}

static u64 no_seq(void *ctx)
{
	(void)ctx;
	return 0;
}

static u64 no_ops(void *ctx, u32 space)
{
	(void)ctx;
	(void)space;
	return 0;
}

/* The picture of [at, at + n pages) by one provider, page by page. */
static int picture_of(struct pagewalk *walker, const u8 *at, u32 n, struct page_state *ret)
{
	struct trace_writer *w = NULL;
	struct snapshot_env env = {.walker = walker, .seq = no_seq, .map_ops = no_ops};
	struct picture p = {.env = &env, .from = (u64)(unsigned long)at};
	size_t pos;
	int err;

	env.w = w;
	p.to = p.from + n * PAGE;
	memset(ret, 0, n * sizeof(*ret));
	err = walker ? walk_by_tables(&p, getpid()) : walk_by_pagemap(&p, getpid());
	for (pos = 0; !err && pos < p.len;) {
		struct mp_ev_run run;
		struct mp_hdr hdr;
		u64 i;

		memcpy(&hdr, p.recs + pos, sizeof(hdr));
		memcpy(&run, p.recs + pos + sizeof(hdr), sizeof(run));
		pos += hdr.size;
		if (hdr.type != MP_EV_RUN)
			continue;
		for (i = (run.start - p.from) / PAGE; run.pages && i < n; run.pages--, i++) {
			ret[i].flags = run.flags;
			ret[i].mapcount = run.mapcount;
			ret[i].node = run.node;
			ret[i].pfn_id = run.pfn_id ? run.pfn_id++ : 0;
		}
	}
	free(p.recs);
	return err;
}

/* Both providers, and the truth where there is one. */
static int agree(struct pagewalk *w, const u8 *at, u32 n, const u32 *want, char *msg, size_t len)
{
	struct page_state *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
	int err = a && b ? 0 : -ENOMEM;
	u32 i;

	if (!err)
		err = picture_of(w, at, n, a);
	if (!err)
		err = picture_of(NULL, at, n, b);
	if (err)
		snprintf(msg, len, "self-test: %s", strerror(-err));
	for (i = 0; !err && i < n; i++) {
		u32 got = a[i].flags & WANT_MASK;

		/* pagemap that is not sure contradicts nobody. */
		if (b[i].flags & MP_PAGE_RACING)
			b[i].flags = (b[i].flags & ~(MP_PAGE_RACING | MP_PAGE_THP)) |
				     (a[i].flags & MP_PAGE_THP);
		if (!memcmp(&a[i], &b[i], sizeof(*a)) &&
		    (!want || want[i] == ~0u || got == want[i]))
			continue;
		snprintf(msg, len,
			 "self-test: page %u is %x/%u/%u by the tables, %x/%u/%u by pagemap, "
			 "expected %x",
			 i, a[i].flags, a[i].mapcount, a[i].node, b[i].flags, b[i].mapcount,
			 b[i].node, want ? want[i] : ~0u);
		err = -EBADMSG;
	}
	free(a);
	free(b);
	return err;
}

static int prove_small(struct pagewalk *w, char *msg, size_t len)
{
	u32 want[512], n = 0, i, k;
	u8 *at;
	int err;

	for (i = 0; i < NR_PARTS; i++)
		n += parts[i].pages;
	at = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, n * PAGE, MADV_NOHUGEPAGE);
	for (i = 0, n = 0; i < NR_PARTS; n += parts[i++].pages) {
		make(&parts[i], at + n * PAGE);
		for (k = 0; k < parts[i].pages; k++)
			want[n + k] = parts[i].make & PAGED_OUT ? ~0u : parts[i].want;
	}
	err = agree(w, at, n, want, msg, len);
	munmap(at, n * PAGE);
	return err;
}

/* One object mapped twice: every page is shared, with its own number. */
static int prove_shared(struct pagewalk *w, char *msg, size_t len)
{
	u32 want[32], i;
	int fd = memfd_create("memprov-calibration", MFD_CLOEXEC), err = -errno;
	u8 *at = MAP_FAILED, *other = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, 32 * PAGE)) {
		at = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		other = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (at != MAP_FAILED && other != MAP_FAILED) {
		for (i = 0; i < 32; i++) {
			at[i * PAGE] = 1;
			if (i % 3)
				other[i * PAGE] = 1;
			want[i] = MP_PAGE_RESIDENT | MP_PAGE_FILE;
		}
		err = agree(w, at, 32, want, msg, len);
	}
	if (at != MAP_FAILED)
		munmap(at, 32 * PAGE);
	if (other != MAP_FAILED)
		munmap(other, 32 * PAGE);
	if (fd >= 0)
		close(fd);
	return err;
}

/* Pages that a child shares, and of them some that were written since: alone, in eights, and in a
 * row. What may be written must be nobody else's: the walk counts on it. */
static int prove_forked(struct pagewalk *w, char *msg, size_t len)
{
	u32 want[64], i;
	u8 *at = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int err = -errno, end[2];
	pid_t child;
	char c;

	if (at == MAP_FAILED)
		return err;
	madvise(at, 64 * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < 64; i++) {
		at[i * PAGE] = 1;
		want[i] = MP_PAGE_RESIDENT;
	}
	if (pipe2(end, O_CLOEXEC)) {
		err = -errno;
		munmap(at, 64 * PAGE);
		return err;
	}
	child = fork();
	err = child < 0 ? -errno : 0;
	if (!child) {
		close(end[1]);
		_exit((int)read(end[0], &c, 1));
	}
	for (i = 0; i < 64; i++)
		if (i < 16 || i >= 48 || i % 3 == 0)
			at[i * PAGE] = 2;
	if (!err)
		err = agree(w, at, 64, want, msg, len);
	close(end[0]);
	close(end[1]);
	if (child > 0)
		waitpid(child, NULL, 0);
	munmap(at, 64 * PAGE);
	return err;
}

/* Huge pages where the kernel grants them: one whole, one with a hole, two without access; small
 * pages elsewhere. */
static int prove_huge(struct pagewalk *w, char *msg, size_t len)
{
	u8 *all = mmap(NULL, 5 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	u8 *at = all + (HUGE - (unsigned long)all % HUGE) % HUGE;
	int err;

	if (all == MAP_FAILED)
		return -errno;
	madvise(at, 4 * HUGE, MADV_HUGEPAGE);
	at[0] = at[HUGE] = at[2 * HUGE] = at[3 * HUGE] = 1;
	madvise(at + HUGE + 8 * PAGE, 4 * PAGE, MADV_DONTNEED);
	mprotect(at + 2 * HUGE, 2 * HUGE, PROT_NONE);
	err = agree(w, at, 4 * HUGE / PAGE, NULL, msg, len);
	munmap(all, 5 * HUGE);
	return err;
}

u64 pagewalk_try_ns(struct pagewalk *w)
{
	const size_t size = 256ul << 20;
	struct snapshot_env env = {.walker = w, .seq = no_seq, .map_ops = no_ops};
	struct picture p = {.env = &env, .to = ~0ull};
	u8 *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i;
	int err;

	if (at == MAP_FAILED)
		return 0;
	madvise(at, size, MADV_NOHUGEPAGE);
	for (i = 0; i < size; i += PAGE)
		at[i] = 1;
	err = walk_by_tables(&p, getpid());
	munmap(at, size);
	free(p.recs);
	return err ? 0 : p.hold_ns;
}

int calibration_prove(struct pagewalk *w, char *msg, size_t len)
{
	int err = prove_small(w, msg, len);

	if (!err)
		err = prove_shared(w, msg, len);
	if (!err)
		err = prove_forked(w, msg, len);
	if (!err)
		err = prove_huge(w, msg, len);
	return err;
}
