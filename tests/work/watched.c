// SPDX-License-Identifier: GPL-2.0-only
/*
 * 256 MiB resident before it is ready: an object of 64 MiB and one of 192. Each line of the
 * standard input is a step: "read" reads 48 MiB of the first object; "map" maps the same again,
 * anonymous and populated by the kernel, from two functions; "again" reads 48 MiB of that. Prints
 * what each step touched and left alone as JSON lines, and "done".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

#define MIB    (1ul << 20)
#define HOT    (64 * MIB)
#define REST   (192 * MIB)
#define FROM   (8 * MIB)
#define LENGTH (48 * MIB)

static char *object(const char *name, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	char *p;

	if (fd < 0 || ftruncate(fd, (off_t)len))
		die("memfd_create");
	p = map_at(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	close(fd);
	touch(p, len / page);
	return p;
}

#define populated(len) \
	map_at(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1)

static NOINLINE char *map_hot(void)
{
	return populated(HOT);
}

static NOINLINE char *map_rest(void)
{
	return populated(REST);
}

static void read_some(const char *p)
{
	size_t i;

	for (i = FROM; i < FROM + LENGTH; i += page)
		(void)*(volatile const char *)(p + i);
}

static void tell(const char *key, const char *owner, size_t touched, size_t all)
{
	printf("{\"%s\":\"%s\",\"touched\":%zu,\"cold\":%zu}\n", key, owner, touched,
	       all - touched);
}

int main(void)
{
	char line[64], *hot, *rest, *mapped = NULL;

	page = (size_t)sysconf(_SC_PAGESIZE);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	hot = object("memprov-hot", HOT);
	rest = object("memprov-rest", REST);
	setvbuf(stdout, NULL, _IOLBF, 4096);
	printf("ready %d\n", (int)getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "read\n")) {
			read_some(hot);
			tell("object", "memprov-hot", LENGTH, HOT);
			tell("object", "memprov-rest", 0, REST);
		} else if (!strcmp(line, "map\n")) {
			mapped = map_hot();
			if (!map_rest())
				return 1;
		} else if (mapped && !strcmp(line, "again\n")) {
			read_some(mapped);
			tell("function", "map_hot", LENGTH, HOT);
			tell("function", "map_rest", 0, REST);
		}
		printf("done\n");
	}
	return !rest;
}
