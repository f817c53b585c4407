/* SPDX-License-Identifier: GPL-2.0-only
 * lib/sym against this very program: its own /proc/self/maps fill a space, its own functions are
 * looked up. Damaged copies of itself and random bytes must give module and offset and no more. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/sym/sym.h"

#define MAX_FRAMES 16

int visible_function(int x);

static struct sym_files *files;

/* As is asked for an address of a space: 0 where nothing is mapped. */
static int resolve(struct sym_space *s, u64 addr, int is_return, struct sym_frame *ret, int max)
{
	struct sym_spot at;

	return sym_locate(s, addr, is_return, &at) ? sym_resolve(files, &at, ret, max) : 0;
}

static int failed;
static void *inline_pc;
static int inline_line;

static void check(const char *name, int good)
{
	printf("%s %s\n", good ? "ok" : "FAIL", name);
	failed |= !good;
}

static __attribute__((noinline)) int hidden_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3;
}

__attribute__((noinline)) int visible_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 5;
}

/* The address of an instruction in the inlined body, taken by the instruction itself. */
static inline __attribute__((always_inline)) void *inlined_function(void)
{
	void *pc;

#if defined(__x86_64__)
	__asm__ volatile("1: lea 1b(%%rip), %0" : "=r"(pc));
#elif defined(__aarch64__)
	__asm__ volatile("1: adr %0, 1b" : "=r"(pc));
#else
#error "no way to read the program counter here"
#endif
	return pc;
}

static __attribute__((noinline)) void inline_caller(void)
{
	inline_line = __LINE__ + 1;
	inline_pc = inlined_function();
}

static int same(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

static int ends(const char *s, const char *tail)
{
	return s && strlen(s) >= strlen(tail) && !strcmp(s + strlen(s) - strlen(tail), tail);
}

static int fill(struct sym_space *s)
{
	unsigned long long start;
	unsigned long long end;
	unsigned long long pgoff;
	char line[8192];
	char perm[8];
	int at;
	int err = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		at = 0;
		if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &start, &end, perm, &pgoff, &at) <
			    4 ||
		    !at || perm[2] != 'x')
			continue;
		err = sym_space_map(s, start, end, pgoff, -1, SYM_BY_PATH, line + at);
	}
	fclose(f);
	return err;
}

static void test_functions(struct sym_space *s, const char *self)
{
	struct sym_frame f[MAX_FRAMES];
	u64 addr = (unsigned long)hidden_function;
	int n;

	n = resolve(s, addr, 0, f, MAX_FRAMES);
	check("static function", n == 1 && same(f[0].function, "hidden_function") &&
					 same(f[0].module, self) && !f[0].inlined);
	check("static function file:line",
	      n == 1 && ends(f[0].file, "tests/unit/sym.c") && f[0].line > 25 && f[0].line < 45);
	n = resolve(s, (unsigned long)visible_function, 0, f, MAX_FRAMES);
	check("global function", n == 1 && same(f[0].function, "visible_function"));
	check("global function file:line",
	      n == 1 && ends(f[0].file, "tests/unit/sym.c") && f[0].line);
	n = resolve(s, addr + 1, 1, f, MAX_FRAMES);
	check("return address is looked up one before",
	      n == 1 && same(f[0].function, "hidden_function"));
	n = resolve(s, addr, 1, f, MAX_FRAMES);
	check("return address at a function's start is not in it",
	      n >= 1 && !same(f[n - 1].function, "hidden_function"));
	check("bad arguments",
	      resolve(s, addr, 0, f, 0) == -EINVAL &&
		      sym_space_map(s, 2, 2, 0, -1, SYM_BY_PATH, self) == -EINVAL &&
		      sym_space_map(s, 0, 8192, ~0ULL, -1, SYM_BY_PATH, self) == -EINVAL);
}

static void test_inline(struct sym_space *s)
{
	struct sym_frame f[MAX_FRAMES];
	struct sym_frame again[MAX_FRAMES];
	int n;
	int m;

	inline_caller();
	n = resolve(s, (unsigned long)inline_pc, 0, f, MAX_FRAMES);
	check("inlined function gives two frames", n == 2);
	check("inlined frame first",
	      n == 2 && same(f[0].function, "inlined_function") && f[0].inlined == 1);
	check("inlining frame second",
	      n == 2 && same(f[1].function, "inline_caller") && !f[1].inlined);
	check("call line", n == 2 && (int)f[1].line == inline_line && f[0].line &&
				   ends(f[1].file, "tests/unit/sym.c"));
	m = resolve(s, (unsigned long)inline_pc, 0, again, MAX_FRAMES);
	check("the same question has the same answer",
	      m == n && again[0].function == f[0].function && again[1].function == f[1].function &&
		      again[1].line == f[1].line);
	check("max is kept", resolve(s, (unsigned long)inline_pc, 0, f, 1) == 1);
}

/* dlsym() on libc's own handle: the default scope would find the sanitizer's malloc. */
static void test_libc(struct sym_space *s)
{
	struct sym_frame f[MAX_FRAMES];
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *func = libc ? dlsym(libc, "qsort") : NULL;
	int n;

	if (!func) {
		check("libc function", 0);
		return;
	}
	n = resolve(s, (unsigned long)func, 0, f, MAX_FRAMES);
	check("libc function", n >= 1 && same(f[n - 1].function, "qsort"));
	check("libc build id", n >= 1 && f[0].build_id && strlen(f[0].build_id) == 40);
	dlclose(libc);
}

static void test_maps(const char *self)
{
	struct sym_space *s;
	struct sym_frame f[2];
	int n;

	if (sym_space_new(files, &s)) {
		check("space", 0);
		return;
	}
	check("empty space", resolve(s, 4096, 0, f, 2) == 0);
	n = sym_space_map(s, 0x1000, 0x9000, 0x10000, -1, SYM_BY_PATH, "[vdso]");
	n |= sym_space_map(s, 0x3000, 0x5000, 0, -1, SYM_BY_PATH, "/gone (deleted)");
	n |= sym_space_map(s, 0x8000, 0xa000, 0, -1, SYM_NO_FILE, self);
	check("maps without files", n == 0);
	n = resolve(s, 0x1234, 0, f, 2);
	check("bracket name", n == 1 && same(f[0].module, "[vdso]") && f[0].offset == 0x10234 &&
				      !f[0].function && !f[0].file && !f[0].build_id);
	n = resolve(s, 0x3010, 0, f, 2);
	check("later map wins",
	      n == 1 && same(f[0].module, "/gone (deleted)") && f[0].offset == 0x10);
	n = resolve(s, 0x5010, 0, f, 2);
	check("rest of the split map",
	      n == 1 && same(f[0].module, "[vdso]") && f[0].offset == 0x14010);
	n = resolve(s, 0x9010, 0, f, 2);
	check("unreadable file",
	      n == 1 && same(f[0].module, self) && f[0].offset == 0x1010 && !f[0].function);
	n = resolve(s, 0xa000, 1, f, 2);
	check("return address at the end of a map", n == 1 && f[0].offset == 0x2000);
	check("outside of maps",
	      resolve(s, 0xa000, 0, f, 2) == 0 && resolve(s, 0xfff, 0, f, 2) == 0 &&
		      resolve(s, 0, 1, f, 2) == 0 && resolve(s, ~0ULL, 0, f, 2) == 0);
	sym_space_free(&s);
	check("freed space is NULL", !s);
}

static unsigned char *slurp(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	unsigned char *buf = NULL;
	struct stat st;

	if (f && !fstat(fileno(f), &st)) {
		buf = malloc((size_t)st.st_size);
		*ret_len = buf ? fread(buf, 1, (size_t)st.st_size, f) : 0;
	}
	if (f)
		fclose(f);
	return buf;
}

static int spill(const char *path, const unsigned char *buf, size_t len)
{
	FILE *f = fopen(path, "we");
	int good;

	if (!f)
		return -1;
	good = fwrite(buf, 1, len, f) == len;
	return fclose(f) || !good ? -1 : 0;
}

/* Frames of a few offsets in a file: -1 error, else the number of those with more than the module.
 */
static int named(const char *path, const u64 *offsets, int nr)
{
	struct sym_files *shared = files; /* the file is another one each time */
	struct sym_frame f[MAX_FRAMES];
	struct sym_space *s;
	int count = 0;
	int i;
	int n;

	if (sym_files_new(&files) || sym_space_new(files, &s))
		return -1;
	if (sym_space_map(s, 0x100000, 0x100000 + (1ULL << 32), 0, -1, SYM_BY_PATH, path))
		count = -1;
	for (i = 0; i < nr && count >= 0; i++) {
		n = resolve(s, 0x100000 + offsets[i], 0, f, MAX_FRAMES);
		if (n < 1 || !same(f[0].module, path) || f[0].offset != offsets[i])
			count = -1;
		else
			count += n > 1 || f[0].function || f[0].file;
	}
	sym_space_free(&s);
	sym_files_free(&files);
	files = shared;
	return count;
}

static void test_truncated(const char *tmp, const unsigned char *buf, size_t len,
			   const u64 *offsets)
{
	const size_t fixed[] = {0, 1, 15, 16, 63, 64, 65, 120, 500, 4096};
	int good = 1;
	size_t i;

	for (i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		good &= !spill(tmp, buf, fixed[i]) && named(tmp, offsets, 3) == 0;
	check("truncated to the headers", good);
	good = 1;
	for (i = 1; i < 16; i++)
		good &= !spill(tmp, buf, len * i / 16) && named(tmp, offsets, 3) == 0;
	check("truncated in the contents", good);
	check("truncated by one byte", !spill(tmp, buf, len - 1) && named(tmp, offsets, 3) == 0);
	check("whole copy", !spill(tmp, buf, len) && named(tmp, offsets, 3) >= 2);
}

static void test_random(const char *tmp, unsigned char *buf, size_t len, const u64 *offsets)
{
	unsigned char *junk = malloc(65536);
	int good = junk != NULL;
	unsigned int seed = 1;
	int round;
	int i;

	for (round = 0; round < 16 && good; round++) {
		for (i = 0; i < 65536; i++)
			junk[i] = (unsigned char)(rand_r(&seed) >> 7);
		if (round & 1)
			memcpy(junk, buf, 16); /* a good e_ident, then junk */
		good &= !spill(tmp, junk, 65536) && named(tmp, offsets, 3) == 0;
	}
	check("random bytes", good);
	/* Any answer will do here, as long as there is one. */
	for (round = 0; round < 64 && good; round++) {
		memcpy(junk, buf, 4096);
		for (i = 0; i < 8; i++)
			buf[16 + (unsigned int)rand_r(&seed) % 1000] ^= (unsigned char)(1 << i);
		good &= !spill(tmp, buf, len) && named(tmp, offsets, 3) >= 0;
		memcpy(buf, junk, 4096);
	}
	check("bit flips in the headers", good);
	free(junk);
}

static void test_corrupt(struct sym_space *s, const char *self)
{
	char tmp[] = "/tmp/memprov-sym-XXXXXX";
	struct sym_frame f[MAX_FRAMES];
	unsigned char *buf;
	u64 offsets[3] = {0x40};
	size_t len = 0;
	int fd;

	buf = slurp(self, &len);
	fd = mkstemp(tmp);
	if (!buf || len < 8192 || fd < 0) {
		check("copy of this program", 0);
		free(buf);
		return;
	}
	close(fd);
	if (resolve(s, (unsigned long)hidden_function, 0, f, MAX_FRAMES) > 0)
		offsets[1] = f[0].offset;
	if (resolve(s, (unsigned long)inline_pc, 0, f, MAX_FRAMES) > 0)
		offsets[2] = f[0].offset;
	test_truncated(tmp, buf, len, offsets);
	test_random(tmp, buf, len, offsets);
	unlink(tmp);
	free(buf);
}

int main(void)
{
	struct sym_space *s;
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0 || sym_files_new(&files) || sym_space_new(files, &s)) {
		check("setup", 0);
		return 1;
	}
	self[len] = 0;
	check("fill from /proc/self/maps", fill(s) == 0);
	test_functions(s, self);
	test_inline(s);
	test_libc(s);
	test_maps(self);
	test_corrupt(s, self);
	sym_space_free(&s);
	sym_files_free(&files);
	return failed || hidden_function(visible_function(0));
}
