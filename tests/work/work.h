// SPDX-License-Identifier: GPL-2.0-only
/* What the workloads share: inlined system calls, touching, and the stdin protocol. Nothing of
 * lib/. */
#ifndef WORK_H
#define WORK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static size_t page;

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
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

static inline void touch(char *p, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		*(volatile char *)(p + i * page) = 1;
}

/* The page's word in /proc/self/pagemap: bit 63 present, bit 62 in swap. */
static inline uint64_t pagemap(const char *p)
{
	static int fd = -1;
	uint64_t word = 0;

	if (fd < 0)
		fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &word, 8, (off_t)((uintptr_t)p / page * 8)) != 8)
		die("/proc/self/pagemap");
	return word;
}

static inline int swap_is_on(void)
{
	FILE *f = fopen("/proc/swaps", "re");
	char line[256];
	int lines = 0;

	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	return lines > 1;
}

static inline void say(const char *owner, size_t reserved, size_t resident, size_t touched)
{
	printf("{\"owner\":\"%s\",\"reserved\":%zu,\"resident\":%zu,\"touched\":%zu}\n", owner,
	       reserved * page, resident * page, touched * page);
}

static inline void await_line(void)
{
	char line[64];

	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

/* Static buffers: stdio allocates nothing while the program is watched. */
static inline void start(void)
{
	static char out[4096], in[4096];

	setvbuf(stdout, out, _IOLBF, sizeof(out));
	setvbuf(stdin, in, _IOLBF, sizeof(in));
	page = (size_t)sysconf(_SC_PAGESIZE);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	printf("ready %d\n", (int)getpid());
	await_line();
}

#endif
