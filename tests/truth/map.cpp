// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of one process: reserved, touched, cut, moved, made again. */
#include "scenario.h"

static NOINLINE char *reserve_only(size_t n)
{
	return map_pages(__func__, n, RW, ANON | MAP_NORESERVE);
}

static NOINLINE char *map_block(size_t n)
{
	return map_pages(__func__, n);
}

static NOINLINE char *map_other(size_t n)
{
	return map_pages(__func__, n);
}

static NOINLINE void fill(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

/* Every page with a stride: no two that touch. */
static NOINLINE void touch_scattered(char *p, size_t n, size_t stride)
{
	for (size_t i = 0; i < n; i++)
		write_pages(__func__, p + i * stride * PAGE, 1);
}

void scenario_reserve()
{
	reserve_only(1ul << 18);
	char *p = map_block(some(200));

	fill(p, 101);
}

void scenario_sparse()
{
	char *p = reserve_only(1ul << 20);

	touch_scattered(p, some(300), some(100));
	touch_scattered(p + (1ul << 30), some(50), 1);
}

static NOINLINE void reuse_at(char *p, size_t n)
{
	map_pages(__func__, n, RW, ANON | MAP_FIXED, p);
	write_pages(__func__, p, n - 37);
}

void scenario_reuse()
{
	size_t n = some(150);
	char *p = map_block(n), *q = map_other(some(100));

	fill(p, n);
	fill(q, 53);
	unmap_pages(p, n);
	reuse_at(p, n);
}

static NOINLINE void second_owner(char *p, size_t n)
{
	map_pages(__func__, n, RW, ANON | MAP_FIXED | MAP_NORESERVE, p);
	for (size_t i = 0; i < 211; i++)
		write_pages(__func__, p + i * 7 * PAGE, 1);
}

void scenario_direct()
{
	char *p = reserve_only(16ul << 20);

	touch_scattered(p, some(400), 4099);
	unmap_pages(p, 16ul << 20);
	second_owner(p, 16ul << 20);
}

static NOINLINE void map_over(char *p, size_t n)
{
	map_pages(__func__, n, RW, ANON | MAP_FIXED, p);
	write_pages(__func__, p, n / 2);
}

void scenario_fixed()
{
	size_t n = some(300);
	char *p = map_block(n);

	fill(p, n);
	map_over(p + 31 * PAGE, 101);
	map_over(p + (n - 17) * PAGE, 17);
}

void scenario_pieces()
{
	size_t n = some(400);
	char *p = map_block(n);

	fill(p, n);
	unmap_pages(p, 31);
	unmap_pages(p + 200 * PAGE, 17);
	unmap_pages(p + (n - 43) * PAGE, 43);
}

static NOINLINE void protect_part(char *p, size_t n)
{
	if (sys(SYS_mprotect, word(p), word(n * PAGE), PROT_NONE))
		die("mprotect");
}

void scenario_protect()
{
	size_t n = some(300);
	char *p = map_block(n);

	fill(p, 223);
	protect_part(p + 100 * PAGE, 150);
}

INLINE char *remap(const char *me, char *p, size_t n, size_t m, int flags, char *to = nullptr)
{
	long at = sys(SYS_mremap, word(p), word(n * PAGE), word(m * PAGE), flags, word(to));

	if (at == -1)
		die("mremap");
	book.move(p, n, reinterpret_cast<char *>(at), m, me, flags & MREMAP_DONTUNMAP);
	return reinterpret_cast<char *>(at);
}

static NOINLINE char *move_to(char *p, size_t n, size_t m, char *to)
{
	return remap(__func__, p, n, m, MREMAP_MAYMOVE | MREMAP_FIXED, to);
}

void scenario_remap_move()
{
	size_t n = some(200);
	char *to = map_other(2 * n), *p = map_block(n);

	fill(to, 29);
	fill(p, n - 11);
	p = move_to(p, n, n, to + 13 * PAGE);
	p = remap(__func__, p, n, n - 57, 0);
}

static NOINLINE char *grow_by_another(char *p, size_t n, size_t m)
{
	p = remap(__func__, p, n, m, MREMAP_MAYMOVE);
	write_pages(__func__, p + (n - 5) * PAGE, 100);
	return p;
}

void scenario_remap_grow()
{
	size_t n = some(200);
	char *p = map_block(n);

	fill(p, n - 20);
	grow_by_another(p, n, 2 * n);
}

static NOINLINE char *leave_behind(char *p, size_t n)
{
	return remap(__func__, p, n, n, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
}

void scenario_remap_keep()
{
	size_t n = some(150);
	char *p = map_block(n);

	fill(p, n);
	leave_behind(p, n);
	fill(p, 23);
}

static NOINLINE char *brk_up(size_t n)
{
	char *old = reinterpret_cast<char *>(sys(SYS_brk, 0));
	char *p = reinterpret_cast<char *>((word(old) + word(PAGE) - 1) & -word(PAGE));

	if (sys(SYS_brk, word(p + n * PAGE)) != word(p + n * PAGE))
		die("brk");
	book.map(p, n, __func__);
	write_pages(__func__, p, n - 3);
	return p;
}

static NOINLINE char *brk_more(size_t n)
{
	char *p = reinterpret_cast<char *>(sys(SYS_brk, 0));

	if (sys(SYS_brk, word(p + n * PAGE)) != word(p + n * PAGE))
		die("brk");
	book.map(p, n, __func__);
	write_pages(__func__, p, n);
	return p;
}

static NOINLINE void brk_down(char *p, size_t n)
{
	char *end = reinterpret_cast<char *>(sys(SYS_brk, 0));

	if (sys(SYS_brk, word(p)) != word(p))
		die("brk");
	book.unmap(p, n);
	if (end != p + n * PAGE)
		die("the break is not where it was");
}

void scenario_brk_shrink()
{
	size_t n = some(150), m = some(100);
	char *p, *q;

	p = brk_up(n);
	q = brk_more(m);
	brk_down(q + 41 * PAGE, m - 41);
	(void)p;
}

/* It grows only if nothing lies within the guard gap below. */
static NOINLINE char *map_stack(size_t n, size_t room)
{
	char *p = map_raw(nullptr, (room + n) * PAGE, PROT_NONE, ANON, -1);

	if (sys(SYS_munmap, word(p), word((room + n) * PAGE)))
		die("munmap");
	return map_pages(__func__, n, RW, ANON | MAP_FIXED | MAP_GROWSDOWN, p + room * PAGE);
}

static NOINLINE void grow_down(char *top, size_t had, size_t n)
{
	for (size_t i = 1; i <= n; i++) {
		char *p = top - (had + i) * PAGE;

		*(volatile char *)p = 1;
		book.map(p, 1, "map_stack");
		book.write(p, 1, __func__);
	}
}

void scenario_growsdown()
{
	size_t n = some(20);
	char *p = map_stack(n, 2048);

	fill(p, n);
	grow_down(p + n * PAGE, n, some(100));
}
