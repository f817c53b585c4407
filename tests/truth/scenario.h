// SPDX-License-Identifier: GPL-2.0-only
/* What a scenario is made of. Its owners are functions: whoever maps is an owner in the view alloc,
 * whoever touches first in the view fault. Every act is said to the book by the one who acts. */
#ifndef TRUTH_SCENARIO_H
#define TRUTH_SCENARIO_H

#include "book.h"

/* The folder for its files. */
extern const char *folder;

/* Deterministic by the seed: a number below n. */
size_t rnd(size_t n);
/* A count that no other is a multiple of: from least up, odd. */
size_t some(size_t least);

/* A file of n pages in the folder, written through: its descriptor. */
int make_file(const char *name, size_t n);

/* Before the recording: reads the operations. */
void prepare_random();

constexpr int RW = PROT_READ | PROT_WRITE;
constexpr int ANON = MAP_PRIVATE | MAP_ANONYMOUS;

INLINE char *map_raw(const void *p, size_t bytes, int prot, int flags, int fd, size_t offset = 0)
{
	long at = sys(SYS_mmap, word(p), word(bytes), prot, flags, fd, word(offset));

	if (at == -1)
		die("mmap");
	return reinterpret_cast<char *>(at);
}

INLINE char *map_pages(const char *me, size_t n, int prot = RW, int flags = ANON,
		       const void *p = nullptr)
{
	char *at = map_raw(p, n * PAGE, prot, flags, -1);

	book.map(at, n, me);
	return at;
}

INLINE void unmap_pages(char *p, size_t n)
{
	if (sys(SYS_munmap, word(p), word(n * PAGE)))
		die("munmap");
	book.unmap(p, n);
}

INLINE void write_pages(const char *me, char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*(volatile char *)(p + i * PAGE) = 1;
	book.write(p, n, me);
}

INLINE void read_pages(const char *me, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)*(volatile const char *)(p + i * PAGE);
	book.read(p, n, me);
}

INLINE void advise(char *p, size_t n, int advice)
{
	if (sys(SYS_madvise, word(p), word(n * PAGE), advice))
		die("madvise");
}

#define TRUTH_SCENARIO(name, needs, what) void scenario_##name();
#include "scenario.def"
#undef TRUTH_SCENARIO

#endif
