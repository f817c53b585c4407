// SPDX-License-Identifier: GPL-2.0-only
/* Incidents to be explained, with their answers: incident WHICH [ARGUMENT]. Each prints "ready
 * PID", waits, does what went wrong, prints who did it and by how much (the answer key), and
 * "done". deploy PAGES   a cache that holds so many pages: another number is another version waste
 * a quarter of what malloc has in memory is in use; huge pages with a byte in each limit FOLDER
 * files that it wrote, and files in shared memory: hardly any of it is its own */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include "work.h"

#define BLOCK	   3000ul
#define BLOCKS	   8192ul
#define HUGE	   (2ul << 20)
#define HUGES	   8ul
#define FILE_PAGES 8192ul
#define SHM_PAGES  4099ul

static NOINLINE char *session_cache_fill(size_t pages)
{
	char *p = map_anon(pages * page);

	touch(p, pages);
	return p;
}

static NOINLINE char *connection_open(size_t pages)
{
	char *p = map_anon(pages * page);

	touch(p, pages);
	return p;
}

static void deploy(size_t pages)
{
	session_cache_fill(pages);
	connection_open(311);
	printf("{\"owner\":\"session_cache_fill\",\"resident\":%zu}\n", pages * page);
	printf("{\"owner\":\"connection_open\",\"resident\":%zu}\n", 311 * page);
}

static NOINLINE char *index_node(void)
{
	char *p = malloc(BLOCK);

	if (!p)
		die("malloc");
	memset(p, 1, BLOCK);
	return p;
}

static NOINLINE void arena_create(void)
{
	char *p = map_anon((HUGES + 1) * HUGE);
	size_t i;

	p = (char *)(((unsigned long)p + HUGE - 1) & ~(HUGE - 1));
	madvise(p, HUGES * HUGE, MADV_HUGEPAGE);
	for (i = 0; i < HUGES; i++)
		p[i * HUGE] = 1;
}

/* Three of four nodes go, and their pages stay: the fourth is on them, too. */
static void waste(void)
{
	static char *nodes[BLOCKS];
	size_t i;

	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	for (i = 0; i < BLOCKS; i++)
		nodes[i] = index_node();
	for (i = 0; i < BLOCKS; i++)
		if (i % 4)
			free(nodes[i]);
	arena_create();
	printf("{\"owner\":\"index_node\",\"live\":%lu,\"freed\":%lu}\n", BLOCKS / 4 * BLOCK,
	       BLOCKS / 4 * 3 * BLOCK);
	printf("{\"owner\":\"arena_create\",\"huge\":%lu,\"written\":%lu}\n", HUGES * HUGE, HUGES);
}

static void fill_file(int fd, size_t pages)
{
	static char text[1 << 16];
	size_t n;

	memset(text, 'x', sizeof(text));
	for (n = 0; n < pages * page; n += sizeof(text))
		if (write(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
			die("write");
}

static void limit(const char *folder)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/log", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	fill_file(fd, FILE_PAGES);
	fsync(fd);
	fd = memfd_create("spool", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, (off_t)(SHM_PAGES * page)))
		die("memfd_create");
	fill_file(fd, SHM_PAGES - SHM_PAGES % 16);
	printf("{\"cache\":%lu,\"shmem\":%lu}\n", FILE_PAGES * page,
	       (SHM_PAGES - SHM_PAGES % 16) * page);
}

int main(int argc, char **argv)
{
	start();
	if (argc == 3 && !strcmp(argv[1], "deploy"))
		deploy(strtoul(argv[2], NULL, 10));
	else if (argc == 2 && !strcmp(argv[1], "waste"))
		waste();
	else if (argc == 3 && !strcmp(argv[1], "limit"))
		limit(argv[2]);
	else
		return 2;
	printf("done\n");
	await_line();
	return 0;
}
