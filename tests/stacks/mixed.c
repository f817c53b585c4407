/* SPDX-License-Identifier: GPL-2.0-only
 * mixed [LIBRARY FUNCTION]: runs through the code that is hard to unwind, all the time: signal
 * handlers on the stack they interrupt and on their own, the vdso, the procedure linkage table,
 * frames of a size known at run time, realigned frames, recursion, calls back from libraries, and a
 * library loaded after "ready". Without frame pointers. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NUMBERS 64

static volatile unsigned long sink;
static int (*loaded)(int);

static void spin(unsigned int n)
{
	while (n--)
		sink += n;
}

static __attribute__((noinline)) void realigned(unsigned int n)
{
	struct {
		char c[64];
	} big __attribute__((aligned(64)));

	memset(&big, (int)n, sizeof(big));
	__asm__ volatile("" : : "r"(&big) : "memory");
	spin(n);
	sink += (unsigned long)big.c[n % 64];
}

static __attribute__((noinline)) void sized(unsigned int n)
{
	char *p = alloca(n);

	memset(p, 1, n);
	__asm__ volatile("" : : "r"(p) : "memory");
	realigned(n);
	sink += (unsigned long)p[n / 2];
}

static __attribute__((noinline)) void both(unsigned int n)
{
	char *p = alloca(n);
	struct {
		char c[128];
	} big __attribute__((aligned(128)));

	memset(&big, 1, sizeof(big));
	memset(p, 1, n);
	__asm__ volatile("" : : "r"(p), "r"(&big) : "memory");
	sized(n);
	sink += (unsigned long)p[n / 2] + (unsigned long)big.c[3];
}

/* Finds its frame by rbx while others run, as the loader does where it resolves a call. */
void by_rbx(void (*fn)(unsigned int), unsigned int n);
__asm__(".text\n.globl by_rbx\n.type by_rbx, @function\nby_rbx:\n.cfi_startproc\n"
	"push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\n"
	"mov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
	"and $-64, %rsp\nsub $192, %rsp\n"
	"mov %rdi, %rax\nmov %esi, %edi\ncall *%rax\n"
	"mov %rbx, %rsp\n.cfi_def_cfa_register %rsp\n"
	"pop %rbx\n.cfi_def_cfa_offset 8\n.cfi_restore %rbx\nret\n"
	".cfi_endproc\n.size by_rbx, . - by_rbx\n");

static __attribute__((noinline)) void uses_rbx(unsigned int n)
{
	register unsigned long kept __asm__("rbx") = n;

	__asm__ volatile("" : "+r"(kept));
	sized(n);
	__asm__ volatile("" : "+r"(kept));
	sink += kept;
}

static void on_alarm(int sig)
{
	(void)sig;
	both(300);
}

static int compare(const void *a, const void *b)
{
	int x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	spin(20);
	return x < y ? -1 : x > y;
}

static void numbers(void)
{
	int v[NUMBERS], i;

	for (i = 0; i < NUMBERS; i++)
		v[i] = rand() % 1000;
	qsort(v, NUMBERS, sizeof(v[0]), compare);
	sink += (unsigned long)v[0];
}

static __attribute__((noinline)) void deep(int n)
{
	struct timespec ts;
	struct timeval tv;

	if (n) {
		deep(n - 1);
		sink++; /* no tail call */
		return;
	}
	for (n = 0; n < 200; n++) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		gettimeofday(&tv, NULL);
		sink += (unsigned long)ts.tv_nsec + (unsigned long)tv.tv_usec;
	}
}

static void *work(void *own_stack)
{
	stack_t ss = {.ss_size = 65536};
	int i;

	if (own_stack) {
		ss.ss_sp = malloc(ss.ss_size);
		sigaltstack(&ss, NULL);
	}
	for (;;) {
		for (i = 0; i < 60; i += 7)
			deep(i);
		numbers();
		both(200);
		by_rbx(uses_rbx, 150);
		by_rbx(spin, 150);
		if (loaded)
			sink += (unsigned long)loaded(12);
		sink += strlen(strerror((int)(sink % 30)));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval every = {{0, 700}, {0, 700}};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};
	pthread_t t;
	void *lib;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	pthread_create(&t, NULL, work, &sa);
	pthread_create(&t, NULL, work, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc > 2) {
		usleep(500000);
		lib = dlopen(argv[1], RTLD_NOW);
		if (!lib)
			return fprintf(stderr, "mixed: %s\n", dlerror()), 1;
		*(void **)&loaded = dlsym(lib, argv[2]);
	}
	work(NULL);
}
