/* SPDX-License-Identifier: GPL-2.0-only
 * copied now|later|many: stacks that no table of ours leads through. Without frame pointers.
 * now: touches PAGES as soon as main runs, when tables are hardly there; later: on a line, through
 * a function that finds its frame by r12; many: the same, each page from a stack of its own. Says
 * what it touched, then "done", and waits for one more line. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 2048ul
#define MANY  16384ul
#define PAGE  4096ul

static volatile unsigned long sink;

void by_r12(void (*fn)(char *, unsigned long), char *p, unsigned long n);
__asm__(".text\n.globl by_r12\n.type by_r12, @function\nby_r12:\n.cfi_startproc\n"
	"push %r12\n.cfi_def_cfa_offset 16\n.cfi_offset %r12, -16\n"
	"mov %rsp, %r12\n.cfi_def_cfa_register %r12\n"
	"and $-64, %rsp\nsub $192, %rsp\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\ncall *%rax\n"
	"mov %r12, %rsp\n.cfi_def_cfa_register %rsp\n"
	"pop %r12\n.cfi_def_cfa_offset 8\n.cfi_restore %r12\nret\n"
	".cfi_endproc\n.size by_r12, . - by_r12\n");

static __attribute__((noinline, noclone)) void fill(char *p, unsigned long n)
{
	unsigned long i;

	for (i = 0; i < n; i++)
		p[i * PAGE] = 1;
	sink++;
}

static __attribute__((noinline, noclone)) void outer(char *p, unsigned long n, int is_direct)
{
	char buf[300];

	memset(buf, (int)n, sizeof(buf));
	__asm__ volatile("" : : "r"(buf) : "memory");
	if (is_direct)
		fill(p, n);
	else
		by_r12(fill, p, n);
	sink += (unsigned long)buf[7];
}

/* The loop's counter lies on the stack, and makes it another one each time. */
static __attribute__((noinline, noclone)) void each(char *p, unsigned long n)
{
	volatile unsigned long i;

	for (i = 0; i < n; i++)
		by_r12(fill, p + i * PAGE, 1);
}

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

int main(int argc, char **argv)
{
	int is_now = argc > 1 && !strcmp(argv[1], "now"),
	    is_many = argc > 1 && !strcmp(argv[1], "many");
	unsigned long n = is_many ? MANY : PAGES;
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, n * PAGE, MADV_NOHUGEPAGE))
		return 1;
	if (is_now)
		outer(p, n, 1);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (!is_now)
		wait_line();
	if (is_many)
		each(p, n);
	else if (!is_now)
		outer(p, n, 0);
	printf("touched %lu\ndone\n", n * PAGE);
	fflush(stdout);
	wait_line();
	return 0;
}
