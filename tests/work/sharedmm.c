// SPDX-License-Identifier: GPL-2.0-only
/*
 * A child that shares the memory but not the thread group (CLONE_VM) replaces a
 * mapping of its parent: the pages belong to the child's call.
 * Prints "ready PID", waits for a line, acts, prints what it did as JSON lines
 * and "done", then waits for another line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static size_t page;

static void die(const char *what)
{
	fprintf(stderr, "sharedmm: %s: %s\n", what, strerror(errno));
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
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	printf("ready %d\n", (int)getpid());
	await_line();
}
#define PAGES 256

static char *base;

static NOINLINE void old_owner(void)
{
	base = map_anon(PAGES * page);
	touch(base, PAGES);
}

static NOINLINE void new_owner(void)
{
	map_at(base, PAGES * page, PROT_READ | PROT_WRITE,
	       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
	touch(base, 100);
}

static int child(void *arg)
{
	(void)arg;
	new_owner();
	_exit(0);
}

int main(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	pid_t pid;

	start();

	old_owner();
	pid = clone(child, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("clone");

	say("old_owner", 0, 0, PAGES);
	say("new_owner", PAGES, 100, 100);
	printf("done\n");
	await_line();
	return 0;
}
