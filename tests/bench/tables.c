/* SPDX-License-Identifier: GPL-2.0-only
 * tables FILE...: what building the unwind table of each takes, and how large it is. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/unwind/table.h"

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		struct unwind_table t = {0};
		double start = now_ms();
		struct stat st;

		if (fd < 0 || fstat(fd, &st) || unwind_table_read(fd, &t)) {
			fprintf(stderr, "tables: cannot read %s\n", argv[i]);
			continue;
		}
		printf("%s, %.1f MB: %.1f ms, %u rules, %u rows, %.0f KiB\n", argv[i],
		       (double)st.st_size / 1e6, now_ms() - start, t.nr_rules, t.nr_rows,
		       (t.nr_rules * 16.0 + t.nr_rows * 8.0) / 1024);
		unwind_table_release(&t);
		close(fd);
	}
	return 0;
}
