/* SPDX-License-Identifier: GPL-2.0-only
 * features: what this machine and this user can record, why not, and the remedy. Each line is a
 * trial, never a version. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "lib/capture/pagewalk.h"
#include "lib/capture/session.h"

struct result {
	const char *capability, *provider, *stability, *status, *grade, *reason, *remedy;
};

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

static void print_json(const struct result *r, size_t n)
{
	size_t i;

	printf("{\"schema\": \"memprov-features/1\", \"capabilities\": [");
	for (i = 0; i < n; i++)
		printf("%s\n {\"name\": \"%s\", \"providers\": [{\"name\": \"%s\", \"stability\": "
		       "\"%s\", "
		       "\"status\": \"%s\", \"grade\": \"%s\", \"reason\": \"%s\", \"remedy\": "
		       "\"%s\"}]}",
		       i ? "," : "", r[i].capability, r[i].provider, r[i].stability, r[i].status,
		       r[i].grade, r[i].reason, r[i].remedy);
	puts("\n]}");
}

int cmd_features(int argc, char **argv)
{
	char msg[256] = "";
	const struct session_opts so = {0};
	struct session *s = NULL;
	int json = argc == 3 && !strcmp(argv[1], "--format") && !strcmp(argv[2], "json"), err;
	char walk_reason[256] = "", hold[64];
	struct pagewalk *walker = NULL;
	const char *bpf, *pfn;
	char *remedy;
	int no_walk;
	size_t i;

	if (argc > 1 && !json && !(argc == 3 && !strcmp(argv[2], "table"))) {
		fputs("usage: memprov features [--format table|json]\n", stderr);
		return EXIT_USAGE;
	}
	err = session_open(NULL, &so, msg, sizeof(msg), &s);
	session_free(&s);
	/* session_open's line ends with the remedy. */
	remedy = strrchr(msg, ':');
	if (remedy)
		*remedy++ = 0;
	remedy = remedy ? remedy + (*remedy == ' ') : "";
	/* Opening it walks prepared pages and compares them with pagemap: the self-test. */
	no_walk = pagewalk_open(walk_reason, sizeof(walk_reason), &walker);
	if (!no_walk) {
		snprintf(hold, sizeof(hold), "longest mmap lock hold %.2f ms of 2",
			 (double)pagewalk_try_ns(walker) / 1e6);
		pagewalk_close(&walker);
	}
	bpf = err ? "absent" : "usable";
	pfn = pfns_visible() && can_open("/proc/kpagecount") ? "usable" : "absent";
	{
		const struct result r[] = {
			{"map", "sys_enter/exit", "tracepoint", bpf, "exact", msg, remedy},
			{"fault", "tracepoint machine", "tracepoint", bpf, "inferred", msg, remedy},
			{"snapshot", "BPF page-table walk", "BTF field",
			 no_walk ? "absent" : "usable", "exact", no_walk ? walk_reason : hold,
			 no_walk && geteuid() ? "run as root" : ""},
			{"snapshot", "pagemap", "UAPI", pfn, "exact",
			 *pfn == 'a' ? "page frame numbers are hidden" : "",
			 *pfn == 'a' ? "run as root or grant CAP_SYS_ADMIN" : ""},
			{"snapshot", "pagemap, no frames", "UAPI", "usable", "inferred",
			 "your own processes; pss, unique and shared unknown", ""},
			{"alloc", "allocator probes", "library symbol", "absent", "exact",
			 "not built in this version: owners are mappings and fault stacks", ""},
		};

		if (json)
			print_json(r, sizeof(r) / sizeof(r[0]));
		for (i = 0; !json && i < sizeof(r) / sizeof(r[0]); i++)
			printf("%-9s %-20s %-14s %-7s %-9s %s%s%s\n", r[i].capability,
			       r[i].provider, r[i].stability, r[i].status, r[i].grade, r[i].reason,
			       r[i].remedy[0] ? "; " : "", r[i].remedy);
	}
	return 0;
}
