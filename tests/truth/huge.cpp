// SPDX-License-Identifier: GPL-2.0-only
/* Huge pages and pages that change their frame: split, collapsed, merged, moved. */
#include "scenario.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/prctl.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

constexpr size_t N = HUGE / PAGE;

/* k huge pages' worth, aligned. */
static NOINLINE char *map_huge(size_t k)
{
	char *p = map_pages(__func__, (k + 1) * N, RW, ANON | MAP_NORESERVE), *q;

	q = reinterpret_cast<char *>((word(p) + word(HUGE) - 1) & -word(HUGE));
	if (q > p)
		unmap_pages(p, (size_t)(q - p) / PAGE);
	if (q + k * HUGE < p + (k + 1) * HUGE)
		unmap_pages(q + k * HUGE, (size_t)(p + HUGE - q) / PAGE);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	if (sys(SYS_madvise, word(q), word(k * HUGE), MADV_HUGEPAGE))
		not_scored("no transparent huge pages");
	return q;
}

static NOINLINE void write_huge(char *p, size_t k)
{
	for (size_t i = 0; i < k; i++) {
		*(volatile char *)(p + i * HUGE) = 1;
		book.fault_huge(p + i * HUGE, __func__);
	}
}

static NOINLINE void write_small(char *p, size_t n)
{
	write_pages(__func__, p, n);
}

void scenario_thp_fault()
{
	char *p = map_huge(5);

	write_huge(p, 3);
}

void scenario_thp_split()
{
	char *p = map_huge(4);

	write_huge(p, 4);
	unmap_pages(p + 100 * PAGE, 53);
	book.huge(p, N, false);
	advise(p + HUGE + 7 * PAGE, 101, MADV_DONTNEED);
	book.huge(p + HUGE, N, false);
	book.drop(p + HUGE + 7 * PAGE, 101);
	if (sys(SYS_mprotect, word(p + 2 * HUGE), 31 * PAGE, PROT_READ))
		die("mprotect");
	book.huge(p + 2 * HUGE, N, false);
}

void scenario_thp_collapse()
{
	char *p = map_huge(2);

	if (sys(SYS_madvise, word(p), word(2 * HUGE), MADV_NOHUGEPAGE))
		die("MADV_NOHUGEPAGE");
	write_small(p, 211);
	write_small(p + HUGE, 37);
	if (sys(SYS_madvise, word(p), word(2 * HUGE), MADV_HUGEPAGE))
		die("MADV_HUGEPAGE");
	if (sys(SYS_madvise, word(p), word(HUGE), MADV_COLLAPSE))
		not_scored("no MADV_COLLAPSE (Linux 6.1)");
	book.write(p, N, nullptr);
	book.huge(p, N, true);
}

/* ---- knobs of the machine, put back ---- */

static long knob(const char *path, const char *value)
{
	static char was[64];
	int fd = open(path, (value ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -1;
	len = value ? ::write(fd, value, strlen(value)) : ::read(fd, was, sizeof(was) - 1);
	close(fd);
	if (len > 0 && !value)
		was[len] = 0;
	return len <= 0 ? -1 : value ? 0 : atol(was);
}

static NOINLINE char *map_equal(size_t n)
{
	return map_pages(__func__, n);
}

void scenario_ksm()
{
	static const char run[] = "/sys/kernel/mm/ksm/run";
	static const char batch[] = "/sys/kernel/mm/ksm/pages_to_scan";
	static const char merged[] = "/proc/self/ksm_merging_pages";
	static char batch_was[32];
	long was = knob(run, nullptr);
	size_t n = 101; /* below max_page_sharing: one page holds them all */
	char *p = map_equal(n);

	if (was < 0 || knob(merged, nullptr) < 0 ||
	    sys(SYS_madvise, word(p), word(n * PAGE), MADV_MERGEABLE))
		not_scored("no KSM, or none that says what it merged");
	write_small(p, n);
	/* Like nobody else's: virtual machines have their pages merged too. */
	for (size_t i = 0; i < n; i++)
		*(volatile uint64_t *)(p + i * PAGE + 8) =
			0x9e3779b97f4a7c15ull * (uint64_t)getpid();
	snprintf(batch_was, sizeof(batch_was), "%ld", knob(batch, nullptr));
	if (knob(batch, "20000") || (was != 1 && knob(run, "1")))
		not_scored("KSM cannot be switched on");
	for (int i = 0; i < 300 && knob(merged, nullptr) < (long)n; i++)
		usleep(20000);
	knob(batch, batch_was);
	if (was != 1)
		knob(run, was ? "2" : "0");
	if (knob(merged, nullptr) != (long)n)
		not_scored("KSM did not merge in 6 s");
	book.share(p, n, (int)n - 1);
}

static NOINLINE char *map_block(size_t n)
{
	return map_pages(__func__, n);
}

void scenario_compaction()
{
	size_t n = some(900);
	char *p = map_block(n);

	write_small(p, n);
	for (size_t i = 0; i < n; i += 2)
		unmap_pages(p + i * PAGE, 1);
	if (knob("/proc/sys/vm/compact_memory", "1"))
		not_scored("no compaction");
}
