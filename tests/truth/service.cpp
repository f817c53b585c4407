// SPDX-License-Identifier: GPL-2.0-only
/* A service, 1:64: everything at once, in one process and a worker. */
#include "child.h"

#include <sys/prctl.h>

static NOINLINE char *index_reserve(size_t n)
{
	return map_pages(__func__, n, RW, ANON | MAP_NORESERVE);
}

static NOINLINE void index_insert(char *index, size_t n, size_t k)
{
	for (size_t i = 0; i < k; i++)
		write_pages(__func__, index + i * (n / k) * PAGE, 1);
}

static NOINLINE char *hot_shard_create(size_t n)
{
	char *p = map_pages(__func__, n);

	write_pages(__func__, p, n);
	return p;
}

static NOINLINE char *cold_shard_create(size_t n)
{
	char *p = map_pages(__func__, n);

	write_pages(__func__, p, n * 2 / 3);
	return p;
}

static NOINLINE void shard_evict(char *p, size_t n)
{
	unmap_pages(p, n);
}

static NOINLINE void shard_trim(char *p, size_t n)
{
	advise(p, n, MADV_DONTNEED);
	book.drop(p, n);
}

static NOINLINE char *shard_resize(char *p, size_t n, size_t m)
{
	long q = sys(SYS_mremap, word(p), word(n * PAGE), word(m * PAGE), MREMAP_MAYMOVE);

	if (q == -1)
		die("mremap");
	book.move(p, n, reinterpret_cast<char *>(q), m, __func__);
	write_pages(__func__, reinterpret_cast<char *>(q) + n * PAGE, m - n - 3);
	return reinterpret_cast<char *>(q);
}

static NOINLINE char *cache_map(int fd, size_t n)
{
	char *p = map_raw(nullptr, n * PAGE, RW, MAP_SHARED, fd);

	book.map_object(p, n, "memfd:truth-cache");
	return p;
}

static NOINLINE void cache_fill(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

static NOINLINE char *huge_create()
{
	constexpr size_t n = HUGE / PAGE;
	char *p = map_pages(__func__, 2 * n), *q;

	q = reinterpret_cast<char *>((word(p) + word(HUGE) - 1) & -word(HUGE));
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	if (sys(SYS_madvise, word(q), word(HUGE), MADV_HUGEPAGE))
		return p;
	*(volatile char *)q = 1;
	book.fault_huge(q, __func__);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	return p;
}

static NOINLINE void worker_change(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

static NOINLINE void worker_buffer(size_t n)
{
	write_pages(__func__, map_pages(__func__, n), n);
}

void scenario_service()
{
	static Child worker;
	size_t n = some(60), cached = some(300), shared = 31;
	char *index = index_reserve(1ul << 18), *hot, *cold, *cache;
	long fd = sys(SYS_memfd_create, word("truth-cache"), MFD_CLOEXEC);

	if (fd < 0 || ftruncate(static_cast<int>(fd), (off_t)(cached * PAGE)))
		die("memfd");
	index_insert(index, 1ul << 18, 311);
	cache = cache_map(static_cast<int>(fd), cached);
	cache_fill(cache, cached - 11);
	cache_fill(cache_map(static_cast<int>(fd), 97), 83);
	hot = hot_shard_create(n);
	for (int i = 0; i < 6; i++) {
		cold = cold_shard_create(n + 7 * (size_t)i);
		if (i % 2)
			shard_evict(cold, n + 7 * (size_t)i);
		else
			shard_trim(cold + 3 * PAGE, 5);
		hot_shard_create(n);
	}
	huge_create();
	shard_resize(hot_shard_create(n), n, 2 * n);
	if (worker.fork()) {
		worker.await();
		worker_change(hot, shared);
		worker_buffer(47);
		worker.hold();
	}
	worker.pass();
	worker.await();
	book.share(hot, shared, -1);
}
