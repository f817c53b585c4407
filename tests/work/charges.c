// SPDX-License-Identifier: GPL-2.0-only
/* Makes its memory cgroup pay for known amounts of everything a process does not map: page cache,
 * a memfd, pipes, slab, page tables; and of what it does. Prime counts, so that a wrong factor
 * shows. charges DIR: files are made in DIR, without a name. charges DIR idle: only waits. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/xattr.h>
#include "work.h"

#define ANON	   1009
#define FILE_SEEN  211
#define FILE_CACHE 701
#define MEMFD_SEEN 103
#define MEMFD	   307
#define PIPES	   13
#define PIPE_PAGES 16
#define XATTRS	   101
#define XATTR_LEN  3900
#define TABLES	   61

static void part(const char *name, size_t bytes)
{
	printf("{\"part\":\"%s\",\"bytes\":%zu}\n", name, bytes);
}

static void fill(int fd, size_t pages)
{
	static char buf[4096];

	for (size_t i = 0; i < pages; i++)
		for (size_t b = 0; b < page; b += sizeof(buf))
			if (write(fd, buf, sizeof(buf)) != (ssize_t)sizeof(buf))
				die("write");
}

static int make_file(const char *dir, size_t pages)
{
	int fd = open(dir, O_TMPFILE | O_RDWR, 0600);

	if (fd < 0)
		die(dir);
	fill(fd, pages);
	/* Clean pages stay in the cache; dirty ones would be written while they are counted. */
	if (fsync(fd))
		die("fsync");
	return fd;
}

static int make_memfd(const char *name, size_t pages)
{
	int fd = memfd_create(name, 0);

	if (fd < 0)
		die("memfd_create");
	fill(fd, pages);
	return fd;
}

static NOINLINE void own_anon(void)
{
	char *p = map_anon(ANON * page);

	touch(p, ANON);
	if (mlock(p, ANON * page))
		die("mlock");
}

static NOINLINE void own_tables(void)
{
	size_t stride = 512 * page;
	char *p = map_anon((TABLES + 1) * stride);

	for (size_t i = 0; i < TABLES; i++)
		*(volatile char *)(p + i * stride) = 1;
}

/* And keeps: whoever reclaims cold pages passes locked ones by. */
static void read_all(char *p, size_t pages)
{
	if (mlock(p, pages * page))
		die("mlock");
	for (size_t i = 0; i < pages; i++)
		(void)*(volatile char *)(p + i * page);
}

static void make_pipes(void)
{
	int fd[2];

	for (int i = 0; i < PIPES; i++) {
		if (pipe2(fd, O_NONBLOCK) || fcntl(fd[1], F_SETPIPE_SZ, PIPE_PAGES * page) < 0)
			die("pipe2");
		fill(fd[1], PIPE_PAGES);
	}
}

/* Attributes of a memfd are kernel memory of their writer. */
static void make_slab(void)
{
	static char value[XATTR_LEN];
	int fd = memfd_create("attributes", 0);
	char name[64];

	for (int i = 0; i < XATTRS; i++) {
		snprintf(name, sizeof(name), "trusted.%d", i);
		if (fsetxattr(fd, name, value, sizeof(value), 0)) {
			part("slab", 0);
			return;
		}
	}
	part("slab", (size_t)XATTRS * XATTR_LEN);
}

int main(int argc, char **argv)
{
	const char *dir = argc > 1 ? argv[1] : "/tmp";

	start();
	if (argc <= 2) {
		int file = make_file(dir, FILE_SEEN);
		int memfd = make_memfd("seen", MEMFD_SEEN);

		own_anon();
		own_tables();
		read_all(map_at(NULL, FILE_SEEN * page, PROT_READ, MAP_SHARED, file), FILE_SEEN);
		read_all(map_at(NULL, MEMFD_SEEN * page, PROT_READ, MAP_SHARED, memfd), MEMFD_SEEN);
		printf("{\"part\":\"file fd\",\"bytes\":%d}\n", make_file(dir, FILE_CACHE));
		make_memfd("unseen", MEMFD);
		make_pipes();
		make_slab();
		part("own_anon", ANON * page);
		part("own_tables", TABLES * page);
		part("file mapped", FILE_SEEN * page);
		part("memfd mapped", MEMFD_SEEN * page);
		part("file", FILE_CACHE * page);
		part("shmem", MEMFD * page);
		part("pipes", PIPES * PIPE_PAGES * page);
		part("tables", TABLES * page);
	}
	printf("done\n");
	await_line();
	return 0;
}
