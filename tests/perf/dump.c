/* SPDX-License-Identifier: GPL-2.0-only
 * The samples of a perf.data file (- is the standard input), a line each: what perf script prints
 * of them, in hex. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/perf/perfdata.h"

static int print(void *ctx, const struct perf_sample *s)
{
	(void)ctx;
	printf("%u %u %llx %llx %llx %llx %llx\n", s->pid, s->tid, (unsigned long long)s->ip,
	       (unsigned long long)s->addr, (unsigned long long)s->data_src,
	       (unsigned long long)s->weight, (unsigned long long)s->phys_addr);
	return 0;
}

int main(int argc, char **argv)
{
	struct perf_info info;
	char msg[128] = "";
	int fd = argc > 1 && strcmp(argv[1], "-") ? open(argv[1], O_RDONLY | O_CLOEXEC) : 0, err;

	if (fd < 0)
		return 2;
	err = perfdata_read(fd, print, NULL, &info, msg, sizeof(msg));
	if (err)
		fprintf(stderr, "%s\n", msg);
	else
		fprintf(stderr, "samples %llu lost %llu throttled %llu monotonic %d\n",
			(unsigned long long)info.samples, (unsigned long long)info.lost,
			(unsigned long long)info.throttled, info.monotonic);
	return err != 0;
}
