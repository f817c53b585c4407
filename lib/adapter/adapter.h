/* SPDX-License-Identifier: GPL-2.0-only
 * What the interposed functions share. Each goes on to the function that the program would have had
 * without this library; a few calls are announced. Uses nothing of a library but dlsym() and
 * environ, so that it works with every C library; holds no lock; allocates nothing.
 *
 * What takes effect on entry is announced on entry: once a free has returned another thread may own
 * the block. */
#ifndef MP_ADAPTER_ADAPTER_H
#define MP_ADAPTER_ADAPTER_H

#include <stddef.h>
#include "lib/adapter/live.h"
#include "lib/adapter/sampler.h"

#define EXPORT __attribute__((visibility("default")))

struct adapter_thread {
	struct sampler sampler;
	u64 samples;
	int resolving;
};

extern __thread struct adapter_thread adapter_here __attribute__((tls_model("initial-exec")));

/* sampler_due() for this thread. */
int adapter_due(u64 n);
/* An allocation, if it did not fail, is sampled. Returns it. */
void *adapter_sampled(void *p, u64 n);
/* p is about to be freed: was that announced? *ret_size: what it was sampled with, 0 not known. */
int adapter_forget(const void *p, u64 *ret_size);
/* It is still there, although that was announced. */
void adapter_restore(const void *p, u64 size);
/* The next function of this name, NULL: nobody has one. */
void *adapter_resolve(const char *name);

static inline int adapter_take(u64 n)
{
	return sampler_lasts(&adapter_here.sampler, n) ? 0 : adapter_due(n);
}

static inline void adapter_free(const void *p)
{
	u64 size;

	if (live_may_be(p))
		adapter_forget(p, &size);
}

/* An allocator may make some of its functions of others: then those have counted the bytes. */
struct adapter_before {
	u64 left, samples;
};

static inline struct adapter_before adapter_before(void)
{
	return (struct adapter_before){adapter_here.sampler.left, adapter_here.samples};
}

static inline void *adapter_after(struct adapter_before b, void *p, u64 n)
{
	if (adapter_here.sampler.left == b.left && adapter_here.samples == b.samples &&
	    adapter_take(n))
		return adapter_sampled(p, n);
	return p;
}

/* next_NAME: at first a function that looks for the real one. What nobody has does nothing. */
/* clang-format off */
#define NEXT(type, name, params, args) \
	static type resolve_##name params; \
	static type(*next_##name) params = resolve_##name; \
	static type resolve_##name params \
	{ \
		type(*real) params = (type(*) params)adapter_resolve(#name); \
		if (!real) \
			return (type)0; \
		next_##name = real; \
		return real args; \
	}
/* clang-format on */

#endif
