// SPDX-License-Identifier: GPL-2.0-only
/*
 * A sharded cache that counts what it maps and touches. Everything is done
 * twice: once before "ready", once after a line on stdin. The second time is
 * what a profiler attached in between can own exactly.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INDEX_SIZE (64UL << 30)
#define HUGE_SIZE  (2UL << 20)

static size_t page;
static uint64_t random_state;

struct truth {
	size_t reserved;
	size_t resident;
	size_t touched;
};

static void die(const char *what)
{
	fprintf(stderr, "demo: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Inlined system calls: the caller is the innermost frame of the stack. */
static inline __attribute__((always_inline)) long call(long nr, long a, long b, long c, long d,
						       long e, long f)
{
#ifdef __x86_64__
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
#else
	return syscall(nr, a, b, c, d, e, f);
#endif
}

static inline __attribute__((always_inline)) char *map(size_t len, int flags, int fd)
{
	long p = call(SYS_mmap, 0, (long)len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == -1)
		die("mmap");
	return (char *)p;
}

static inline __attribute__((always_inline)) char *map_anon(size_t len)
{
	char *p = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	/* Keeps page counts exact where huge pages are the default. */
	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

static void unmap(char *p, size_t len)
{
	if (len && munmap(p, len))
		die("munmap");
}

static size_t random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

/* An odd number of pages, n to 5n/4. */
static size_t pages_around(size_t n)
{
	return (n + random_below(n / 4)) | 1;
}

static void touch(char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		*(volatile char *)(p + i * page) = 1;
}

static __attribute__((noinline)) char *index_reserve(void)
{
	char *p = map(INDEX_SIZE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	madvise(p, INDEX_SIZE, MADV_NOHUGEPAGE);
	return p;
}

/* One page at a random place in each of n equal slots: all distinct. */
static __attribute__((noinline)) size_t index_touch(char *index)
{
	size_t n = pages_around(1500);
	size_t slot = INDEX_SIZE / page / n;

	for (size_t i = 0; i < n; i++) {
		size_t at = i * slot + random_below(slot);

		*(volatile char *)(index + at * page) = 1;
	}
	return n * page;
}

static __attribute__((noinline)) struct truth hot_shard_create(void)
{
	size_t n = pages_around(2000);
	char *p = map_anon(n * page);

	for (int round = 0; round < 3; round++)
		touch(p, n);
	return (struct truth){n * page, n * page, n * page};
}

/* Filled once to two thirds, then never used. */
static __attribute__((noinline)) struct truth cold_shard_create(void)
{
	size_t n = pages_around(1800);
	size_t used = n * 2 / 3;
	char *p = map_anon(n * page);

	touch(p, used);
	return (struct truth){n * page, used * page, used * page};
}

static __attribute__((noinline)) struct truth leaked_buffers_create(void)
{
	struct truth t = {0};

	for (int i = 0; i < 7; i++) {
		size_t n = pages_around(120);

		touch(map_anon(n * page), n);
		t.reserved += n * page;
	}
	t.resident = t.touched = t.reserved;
	return t;
}

/* One buffer half given back, another unmapped whole. */
static __attribute__((noinline)) struct truth freed_create(void)
{
	size_t n = pages_around(700);
	size_t m = pages_around(500);
	size_t dropped = n / 2;
	char *p = map_anon(n * page);
	char *q = map_anon(m * page);

	touch(p, n);
	touch(q, m);
	if (madvise(p + page, dropped * page, MADV_DONTNEED))
		die("madvise");
	unmap(q, m * page);
	return (struct truth){n * page, (n - dropped) * page, (n + m) * page};
}

static __attribute__((noinline)) struct truth huge_create(void)
{
	size_t len = (3 + random_below(3)) * HUGE_SIZE;
	char *raw = map(len + HUGE_SIZE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	size_t head = -(uintptr_t)raw & (HUGE_SIZE - 1);
	char *p = raw + head;

	unmap(raw, head);
	unmap(p + len, HUGE_SIZE - head);
	madvise(p, len, MADV_HUGEPAGE);
	touch(p, len / page);
	return (struct truth){len, len, len};
}

static __attribute__((noinline)) struct truth file_shard_open(const char *path)
{
	size_t n = pages_around(600);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || ftruncate(fd, (off_t)(n * page)))
		die(path);
	touch(map(n * page, MAP_SHARED, fd), n);
	close(fd);
	return (struct truth){n * page, n * page, n * page};
}

/* The same object mapped twice and used through both. */
static __attribute__((noinline)) struct truth memfd_share(const char *name)
{
	size_t n = pages_around(400);
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)(n * page)))
		die("memfd_create");
	touch(map(n * page, MAP_SHARED, fd), n);
	touch(map(n * page, MAP_SHARED, fd), n);
	close(fd);
	return (struct truth){2 * n * page, 2 * n * page, 2 * n * page};
}

static void say(int phase, const char *owner, const char *object, struct truth t)
{
	printf("{\"owner\":\"%s\",\"phase\":%d,", owner, phase);
	if (object)
		printf("\"object\":\"%s\",", object);
	printf("\"reserved\":%zu,\"resident\":%zu,\"touched\":%zu}\n", t.reserved, t.resident,
	       t.touched);
}

static void shard_path(char *path, size_t size, int phase)
{
	const char *dir = getenv("TMPDIR");

	snprintf(path, size, "%s/memprov-demo-%d-shard%d", dir ? dir : "/tmp", (int)getpid(),
		 phase);
}

static void run(int phase)
{
	char path[4096], name[64];
	struct truth index = {.reserved = INDEX_SIZE};

	shard_path(path, sizeof(path), phase);
	snprintf(name, sizeof(name), "memprov-demo-%d-share%d", (int)getpid(), phase);

	index.resident = index.touched = index_touch(index_reserve());
	struct truth hot = hot_shard_create();
	struct truth cold = cold_shard_create();
	struct truth leaked = leaked_buffers_create();
	struct truth freed = freed_create();
	struct truth huge = huge_create();
	struct truth file = file_shard_open(path);
	struct truth share = memfd_share(name);

	say(phase, "index_reserve", NULL, index);
	say(phase, "hot_shard_create", NULL, hot);
	say(phase, "cold_shard_create", NULL, cold);
	say(phase, "leaked_buffers_create", NULL, leaked);
	say(phase, "freed_create", NULL, freed);
	say(phase, "huge_create", NULL, huge);
	say(phase, "file_shard_open", strrchr(path, '/') + 1, file);
	say(phase, "memfd_share", name, share);
}

static void remove_files(void)
{
	char path[4096];

	for (int phase = 1; phase <= 2; phase++) {
		shard_path(path, sizeof(path), phase);
		unlink(path);
	}
}

/* At the end of stdin there is nobody left to serve. */
static void await_line(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

int main(int argc, char **argv)
{
	unsigned long seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
	static char out[4096], in[4096];

	/* Static buffers: stdio allocates nothing between the phases. */
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	setvbuf(stdin, in, _IOLBF, sizeof(in));
	page = (size_t)sysconf(_SC_PAGESIZE);
	random_state = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	atexit(remove_files);

	printf("seed %lu\n", seed);
	run(1);
	printf("ready %d\n", (int)getpid());
	await_line();
	run(2);
	printf("done\n");
	await_line();
	return 0;
}
