// SPDX-License-Identifier: GPL-2.0-only
/*
 * Huge pages: one block filled, one touched once (all of it is resident where
 * the kernel gave a huge page), one with its middle unmapped.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
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

#define NOINLINE __attribute__((noinline))

static size_t page;

static void die(const char *what)
{
	fprintf(stderr, "thp: %s: %s\n", what, strerror(errno));
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

static inline __attribute__((always_inline)) char *map_at(char *at, size_t len, int prot, int flags,
							  int fd)
{
	long p = call(SYS_mmap, (long)at, (long)len, prot, flags, fd, 0);

	if (p == -1)
		die("mmap");
	return (char *)p;
}

#define map_anon(len) map_at(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1)

static void touch(char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		*(volatile char *)(p + i * page) = 1;
}

/* The page's word in /proc/self/pagemap: bit 63 present, bit 62 in swap. */
static uint64_t pagemap(const char *p)
{
	static int fd = -1;
	uint64_t word = 0;

	if (fd < 0)
		fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &word, 8, (off_t)((uintptr_t)p / page * 8)) != 8)
		die("/proc/self/pagemap");
	return word;
}

static void say(const char *owner, size_t reserved, size_t resident, size_t touched)
{
	printf("{\"owner\":\"%s\",\"reserved\":%zu,\"resident\":%zu,\"touched\":%zu}\n", owner,
	       reserved * page, resident * page, touched * page);
}

static void await_line(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

/* Static buffers: stdio allocates nothing while the program is watched. */
static void start(void)
{
	static char out[4096], in[4096];

	setvbuf(stdout, out, _IOLBF, sizeof(out));
	setvbuf(stdin, in, _IOLBF, sizeof(in));
	page = (size_t)sysconf(_SC_PAGESIZE);
	printf("ready %d\n", (int)getpid());
	await_line();
}

#define HUGE_SIZE (2UL << 20)

/* Two aligned megabytes; the rest of the reservation is given back. */
static inline __attribute__((always_inline)) char *map_block(void)
{
	char *raw = map_anon(2 * HUGE_SIZE);
	size_t head = -(uintptr_t)raw & (HUGE_SIZE - 1);

	if (head && munmap(raw, head))
		die("munmap");
	if (munmap(raw + head + HUGE_SIZE, HUGE_SIZE - head))
		die("munmap");
	madvise(raw + head, HUGE_SIZE, MADV_HUGEPAGE);
	return raw + head;
}

static NOINLINE void full_block(void)
{
	touch(map_block(), HUGE_SIZE / page);
}

static NOINLINE size_t sparse_block(void)
{
	char *p = map_block();
	size_t present = 0;

	touch(p + 77 * page, 1);
	for (size_t i = 0; i < HUGE_SIZE / page; i++)
		present += pagemap(p + i * page) >> 63;
	return present;
}

static NOINLINE void cut_block(void)
{
	char *p = map_block();

	touch(p, HUGE_SIZE / page);
	if (munmap(p + 100 * page, 131 * page))
		die("munmap");
}

int main(void)
{
	start();

	size_t n = HUGE_SIZE / page;
	full_block();
	size_t sparse = sparse_block();
	cut_block();

	say("full_block", n, n, n);
	say("sparse_block", n, sparse, 1);
	say("cut_block", n - 131, n - 131, n);
	printf("done\n");
	await_line();
	return 0;
}
