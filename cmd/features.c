/* SPDX-License-Identifier: GPL-2.0-only
 * features: what this machine and this user can record, why not, and the remedy. Each line is a
 * trial, never a version. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/touch.h"
#include "lib/capture/life.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/selftest.h"
#include "lib/capture/session.h"
#include "lib/out/features.h"

static int can_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int pfns_visible(void)
{
	static volatile char page[4096];
	unsigned long long e = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	page[0] = 1;
	if (fd < 0)
		return 0;
	n = pread(fd, &e, 8, (off_t)((unsigned long)page / 4096 * 8));
	close(fd);
	return n == 8 && (e & ((1ull << 55) - 1));
}

/* The rows a session gives, and why not. */
struct programs {
	char msg[256]; /* session_open's line; ends with the remedy */
	const char *remedy;
	struct selftest test;
	int absent, late;
	struct feature life[LIFE_HOOKS];
};

/* What becomes of pages: there with the other programs, or not. */
static void try_life(struct programs *p, struct session *s)
{
	const char *why;
	int i;

	if (p->late)
		life_no_swap_in(session_life(s));
	for (i = 0; i < LIFE_HOOKS; i++) {
		struct feature *f = &p->life[i];

		why = life_hook(s ? session_life(s) : NULL, (enum life_hook)i, &f->capability,
				&f->provider, &f->stability);
		f->status = why ? "absent" : "usable";
		f->grade = "inferred";
		f->reason = why ? why : "";
		f->remedy = "";
	}
}

static void try_programs(struct programs *p)
{
	const struct session_opts so = {0};
	struct session *s = NULL;
	char *colon;

	memset(p, 0, sizeof(*p));
	p->remedy = "";
	p->absent = session_open(NULL, &so, p->msg, sizeof(p->msg), &s);
	if (!p->absent && selftest_run(s, &p->test))
		snprintf(p->test.wrong[SELFTEST_FAULT], sizeof(p->test.wrong[0]),
			 "the self-test could not be run");
	p->late = !p->absent && session_counters_late(s);
	try_life(p, s);
	session_free(&s);
	colon = strrchr(p->msg, ':');
	if (colon) {
		*colon++ = 0;
		p->remedy = colon + (*colon == ' ');
	}
}

static const char *row_reason(const struct programs *p, enum selftest_row row)
{
	if (p->absent)
		return p->msg;
	if (p->test.wrong[row][0])
		return p->test.wrong[row];
	return row == SELFTEST_FAULT && p->late
		       ? "self-test passed; faults on pages that are in the page cache are not seen"
		       : "self-test passed";
}

static const char *row_status(const struct programs *p, enum selftest_row row)
{
	return p->absent || p->test.wrong[row][0] ? "absent" : "usable";
}

/* Opening the walk compares it with pagemap on prepared pages: its self-test. */
static const char *try_walk(char *reason, size_t len)
{
	struct pagewalk *walker = NULL;

	if (pagewalk_open(reason, len, &walker))
		return "absent";
	snprintf(reason, len,
		 "self-test passed, longest hold of the mmap lock %.2f ms (limit 2 ms)",
		 (double)pagewalk_try_ns(walker) / 1e6);
	pagewalk_close(&walker);
	return "usable";
}

static int parse(int argc, char **argv, int *ret_json)
{
	static const struct option longs[] = {
		{"format", required_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c != 'f')
			return usage(stderr, "features");
		*ret_json = !strcmp(optarg, "json");
		if (!*ret_json && strcmp(optarg, "table"))
			return misuse("features", "--format %s: table or json", optarg);
	}
	return optind < argc ? misuse("features", "%s: no argument is expected", argv[optind]) : 0;
}

int cmd_features(int argc, char **argv)
{
	int json = 0, status = parse(argc, argv, &json);
	const char *walk, *pfn;
	struct programs p;
	char reason[256] = "";
	size_t i;

	if (status)
		return status;
	try_programs(&p);
	walk = try_walk(reason, sizeof(reason));
	pfn = pfns_visible() && can_open("/proc/kpagecount") ? "usable" : "absent";
	{
		struct feature r[6 + LIFE_HOOKS + TOUCH_ROWS] = {
			{"map", "sys_enter/exit", "tracepoint", row_status(&p, SELFTEST_MAP),
			 "exact", row_reason(&p, SELFTEST_MAP), p.remedy},
			{"fault", "tracepoint machine", "tracepoint",
			 row_status(&p, SELFTEST_FAULT), "inferred", row_reason(&p, SELFTEST_FAULT),
			 p.remedy},
			{"snapshot", "BPF page-table walk", "BTF field", walk, "exact", reason,
			 *walk == 'a' && geteuid() ? "run as root" : ""},
			{"snapshot", "pagemap", "UAPI", pfn, "exact",
			 *pfn == 'a' ? "page frame numbers are hidden" : "",
			 *pfn == 'a' ? "run as root or grant CAP_SYS_ADMIN" : ""},
			{"snapshot", "pagemap, no frames", "UAPI", "usable", "inferred",
			 "your own processes; pss, unique and shared unknown", ""},
			{"alloc", "adapter", "library symbol or USDT",
			 *row_status(&p, SELFTEST_MAP) == 'u' ? "untested" : "absent", "-",
			 "in commands that record starts, unless they are static; sampled", ""},
			{"alloc", "allocator probes", "library symbol",
			 *row_status(&p, SELFTEST_MAP) == 'u' ? "untested" : "absent", "-",
			 "tried when asked for (record --alloc uprobe); else owners are mappings "
			 "and fault stacks",
			 ""},
			p.life[LIFE_RECLAIM],
			p.life[LIFE_SWAP_IN],
			p.life[LIFE_MIGRATE],
			p.life[LIFE_COLLAPSE],
			p.life[LIFE_MAJOR],
			p.life[LIFE_STALL],
		};

		touch_features(*walk == 'u', row_status(&p, SELFTEST_FAULT), r + 6 + LIFE_HOOKS);
		/* What cannot be had gives nothing of any grade. */
		for (i = 0; i < sizeof(r) / sizeof(r[0]); i++)
			if (strcmp(r[i].status, "usable") != 0)
				r[i].grade = "-";
		if (json)
			return features_json(stdout, r, sizeof(r) / sizeof(r[0])) ? 1 : 0;
		features_table(stdout, r, sizeof(r) / sizeof(r[0]));
	}
	return 0;
}
