// SPDX-License-Identifier: GPL-2.0-only
/* Memory that goes and comes back: swap, and the limit of a cgroup. Which pages go is the kernel's
 * choice: pagemap says it, and the oracle says that it did. */
#include "scenario.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

static NOINLINE char *map_block(size_t n)
{
	return map_pages(__func__, n);
}

static NOINLINE void fill(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

static NOINLINE void read_back(char *p, size_t n)
{
	read_pages(__func__, p, n);
	book.look(p, n);
}

void scenario_swap()
{
	size_t n = some(300);
	char *p = map_block(n);

	fill(p, n);
	advise(p, n, MADV_PAGEOUT);
	book.look(p, n);
	if (book.resident(p, n) == n)
		not_scored("nothing was paged out");
	read_back(p + 8 * PAGE, 40);
	/* Readahead brings neighbours into the swap cache, not into the page table. */
	book.look(p, n);
}

static int put(const char *dir, const char *file, const char *value)
{
	static char path[512];
	int fd, ok;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ok = ::write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return ok ? 0 : -1;
}

/* A group of its own with a limit, on whichever hierarchy has the controller. */
static void limit_memory(const char *bytes)
{
	static const struct {
		const char *mount, *limit, *marker;
	} versions[] = {
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max", "cgroup.controllers"},
	};
	static char dir[256], pid[32], marker[512];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	for (const auto &v : versions) {
		snprintf(marker, sizeof(marker), "%s/%s", v.mount, v.marker);
		if (access(marker, F_OK))
			continue;
		if (!strcmp(v.limit, "memory.max"))
			put(v.mount, "cgroup.subtree_control", "+memory");
		snprintf(dir, sizeof(dir), "%s/truth-%s", v.mount, pid);
		if (mkdir(dir, 0700))
			break;
		print("{\"cgroup\":\"%s\"}\n", dir);
		if (put(dir, v.limit, bytes) || put(dir, "cgroup.procs", pid))
			break;
		return;
	}
	not_scored("no memory cgroup can be made");
}

static NOINLINE char *map_data(int fd, size_t n)
{
	char *p = map_raw(nullptr, n * PAGE, PROT_READ, MAP_SHARED, fd);

	book.map_object(p, n, "/large");
	return p;
}

static NOINLINE void read_all(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)*(volatile char *)(p + i * PAGE);
}

/* 12 MiB of a file under a limit of 8. */
void scenario_reclaim()
{
	size_t n = 3072, m = some(200);
	char *p, *q = map_block(m);
	int fd;

	limit_memory("8388608");
	fd = make_file("large", n);
	fill(q, m);
	p = map_data(fd, n);
	read_all(p, n);
	read_all(p, 500);
	book.look(p, n);
	book.look(q, m);
	if (book.resident(p, n) == n)
		not_scored("nothing was reclaimed");
}
