/* SPDX-License-Identifier: GPL-2.0-only
 * lib/sym/perfmap: what a program says of the code it made. It may say anything. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/sym/perfmap.h"

#define LINES 200000

static int failed;

static void check(const char *name, int good)
{
	printf("%s %s\n", good ? "ok" : "FAIL", name);
	failed |= !good;
}

static int file_of(const char *text, size_t len)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		exit(1);
	return fd;
}

static struct perfmap *read_map(const char *text)
{
	int fd = file_of(text, strlen(text));
	struct perfmap *m = NULL;

	if (perfmap_read(fd, &m))
		m = NULL;
	close(fd);
	return m;
}

static int is(const struct perfmap *m, u64 addr, const char *name)
{
	const char *have = perfmap_find(m, addr);

	return name ? have && !strcmp(have, name) : !have;
}

static void good_lines(void)
{
	struct perfmap *m = read_map("1000 40 first\n0x2000 0x10 with spaces (and) more\n"
				     "ffffffffffff0000 100 high\n");

	check("a map", m != NULL);
	if (!m)
		return;
	check("first byte", is(m, 0x1000, "first"));
	check("last byte", is(m, 0x103f, "first"));
	check("behind it", is(m, 0x1040, NULL));
	check("before it", is(m, 0xfff, NULL));
	check("0x, and a name with spaces", is(m, 0x2008, "with spaces (and) more"));
	check("a high address", is(m, 0xffffffffffff0050, "high"));
	perfmap_free(&m);
	check("freed", !m);
}

static void newer_lines(void)
{
	struct perfmap *m = read_map("1000 100 old\n1000 100 new\n1040 10 inner\n"
				     "5000 1000 large\n5800 10 late\n5000 20 latest\n");

	check("what was made later counts", m && is(m, 0x1000, "new") && is(m, 0x1090, "new"));
	check("also inside", m && is(m, 0x1048, "inner") && is(m, 0x1050, "new"));
	check("and where it overlaps",
	      m && is(m, 0x5000, "latest") && is(m, 0x5020, "large") && is(m, 0x5805, "late"));
	perfmap_free(&m);
}

static void bad_lines(void)
{
	struct perfmap *m =
		read_map("\n \nzz 10 no number\n1000\n1000 10\n1000 10 \n-1 10 minus\n"
			 "1000 0 empty\nfffffffffffffff0 20 over the end\n"
			 "10000000000000000 10 too long\n1000  20  good\n2000 10 cut off");

	check("lines of no sense are passed over", m && is(m, 0x1010, "good"));
	check("none of them names anything",
	      m && is(m, 0, NULL) && is(m, 5, NULL) && is(m, ~0ull, NULL));
	check("the last line is half written", m && is(m, 0x2000, NULL));
	perfmap_free(&m);
	m = read_map("");
	check("an empty file", m && is(m, 0, NULL) && is(m, 0x1000, NULL));
	perfmap_free(&m);
}

/* Every entry covers everything: a lookup must not become a search of them all. */
static void many_lines(void)
{
	size_t len = 0, room = (size_t)LINES * 40;
	char *text = malloc(room);
	struct perfmap *m = NULL;
	u64 i, named = 0;
	int fd;

	for (i = 0; text && i < LINES; i++)
		len += (size_t)snprintf(text + len, room - len, "%llx ffffffffff f%llu\n",
					(unsigned long long)i, (unsigned long long)i);
	fd = text ? file_of(text, len) : -1;
	if (fd < 0 || perfmap_read(fd, &m))
		check("many overlapping lines", 0);
	for (i = 0; m && i < 1000000; i++)
		named += perfmap_find(m, i * 7) != NULL;
	check("many overlapping lines", named == 1000000);
	perfmap_free(&m);
	close(fd);
	free(text);
}

static void no_file(void)
{
	char zeros[4096] = {0};
	struct perfmap *m = NULL;
	int fds[2], fd;

	if (pipe(fds))
		exit(1);
	check("a pipe is refused", perfmap_read(fds[0], &m) < 0 && !m);
	close(fds[0]);
	close(fds[1]);
	fd = memfd_create("large", MFD_CLOEXEC);
	check("a huge file is refused",
	      !ftruncate(fd, 1ll << 40) && perfmap_read(fd, &m) < 0 && !m);
	close(fd);
	fd = file_of(zeros, sizeof(zeros));
	check("zeros name nothing", !perfmap_read(fd, &m) && is(m, 0, NULL));
	perfmap_free(&m);
	close(fd);
}

int main(void)
{
	good_lines();
	newer_lines();
	bad_lines();
	many_lines();
	no_file();
	return failed;
}
