/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "lib/adapter/adapter.h"
#include "lib/adapter/announce.h"

#define DEFAULT_INTERVAL (512u << 10)

extern char **environ;

__thread struct adapter_thread adapter_here;
static u64 interval; /* 0: not known yet */

/* ---- settings ---- */

/* What follows "name=" in the environment: the C library's own getenv() may not be there yet. */
static const char *setting(const char *name)
{
	char **e;
	size_t i;

	for (e = environ; e && *e; e++) {
		for (i = 0; name[i] && (*e)[i] == name[i]; i++)
			;
		if (!name[i] && (*e)[i] == '=')
			return *e + i + 1;
	}
	return NULL;
}

static u64 number(const char *text, u64 otherwise)
{
	u64 n = 0;

	for (; text && *text >= '0' && *text <= '9' && n < 1ull << 50; text++)
		n = n * 10 + (u64)(*text - '0');
	return n && !*text ? n : otherwise;
}

static u64 random_seed(void)
{
	u32 lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return ((u64)hi << 32 | lo) ^ (u64)&adapter_here;
}

/* Before anything of this process is announced. */
static void start(void)
{
	u64 expected = 0, set = number(setting("MEMPROV_SAMPLE_BYTES"), DEFAULT_INTERVAL);

	if (__atomic_compare_exchange_n(&interval, &expected, set, 0, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		announce_sampler(set);
}

/* Also where nothing is ever allocated. */
__attribute__((constructor)) static void begin(void)
{
	if (!interval)
		start();
}

int adapter_due(u64 n)
{
	struct sampler *s = &adapter_here.sampler;

	if (!interval)
		start();
	if (!s->state)
		sampler_start(s, random_seed(), interval);
	return sampler_due(s, n, interval);
}

/* ---- samples ---- */

static void announce(const void *p, u64 n)
{
	live_add(p, n);
	announce_alloc(p, n, sampler_weight(n, interval));
}

void *adapter_sampled(void *p, u64 n)
{
	adapter_here.samples++;
	if (p)
		announce(p, n);
	return p;
}

int adapter_forget(const void *p, u64 *ret_size)
{
	if (!p || !live_del(p, ret_size))
		return 0;
	announce_free(p);
	return 1;
}

void adapter_restore(const void *p, u64 size)
{
	if (size)
		announce(p, size);
	else
		announce_lost();
}

/* dlsym() does without the memory that is refused to it meanwhile. */
void *adapter_resolve(const char *name)
{
	void *p;

	if (adapter_here.resolving)
		return NULL;
	adapter_here.resolving = 1;
	p = dlsym(RTLD_NEXT, name);
	adapter_here.resolving = 0;
	return p;
}
