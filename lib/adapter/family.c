/* SPDX-License-Identifier: GPL-2.0-only
 * C's allocation functions. */
#include "lib/adapter/adapter.h"

/* As any program declares them. */
EXPORT void *malloc(size_t n);
EXPORT void *calloc(size_t k, size_t n);
EXPORT void free(void *p);
EXPORT void *realloc(void *p, size_t n);
EXPORT void *reallocarray(void *p, size_t k, size_t n);
EXPORT void *memalign(size_t a, size_t n);
EXPORT void *aligned_alloc(size_t a, size_t n);
EXPORT void *valloc(size_t n);
EXPORT void *pvalloc(size_t n);
EXPORT int posix_memalign(void **ret, size_t a, size_t n);
EXPORT void free_sized(void *p, size_t n);
EXPORT void free_aligned_sized(void *p, size_t a, size_t n);

/* clang-format off */
NEXT(void *, malloc, (size_t n), (n))
NEXT(void *, calloc, (size_t k, size_t n), (k, n))
NEXT(void *, realloc, (void *p, size_t n), (p, n))
NEXT(void *, reallocarray, (void *p, size_t k, size_t n), (p, k, n))
NEXT(void *, memalign, (size_t a, size_t n), (a, n))
NEXT(void *, aligned_alloc, (size_t a, size_t n), (a, n))
NEXT(void *, valloc, (size_t n), (n))
NEXT(void *, pvalloc, (size_t n), (n))
NEXT(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
NEXT(void, free, (void *p), (p))
NEXT(void, free_sized, (void *p, size_t n), (p, n))
NEXT(void, free_aligned_sized, (void *p, size_t a, size_t n), (p, a, n))
/* clang-format on */

/* Functions of their own keep what few calls need out of the others' way. */
static __attribute__((noinline)) void *malloc_due(size_t n)
{
	int is_sampled = adapter_due(n);
	void *p = next_malloc(n);

	return is_sampled ? adapter_sampled(p, n) : p;
}

EXPORT void *malloc(size_t n)
{
	return sampler_lasts(&adapter_here.sampler, n) ? next_malloc(n) : malloc_due(n);
}

/* A product too large fails, and what fails is not announced. */
EXPORT void *calloc(size_t k, size_t n)
{
	struct adapter_before b = adapter_before();

	return adapter_after(b, next_calloc(k, n), k * n);
}

static __attribute__((noinline)) void free_known(void *p)
{
	adapter_free(p);
	next_free(p);
}

EXPORT void free(void *p)
{
	if (live_may_be(p))
		free_known(p);
	else
		next_free(p);
}

/* The old block is announced as freed first, and as there again when the call failed: nobody else
 * can have got it meanwhile. */
static __attribute__((noinline)) void *resize_known(void *p, size_t n)
{
	struct adapter_before b = adapter_before();
	u64 size;
	int was_freed = adapter_forget(p, &size);
	void *q = next_realloc(p, n);

	if (was_freed && !q && n)
		adapter_restore(p, size);
	return adapter_after(b, q, n);
}

EXPORT void *realloc(void *p, size_t n)
{
	struct adapter_before b = adapter_before();

	if (p && live_may_be(p))
		return resize_known(p, n);
	return adapter_after(b, next_realloc(p, n), n);
}

EXPORT void *reallocarray(void *p, size_t k, size_t n)
{
	size_t bytes;

	if (__builtin_mul_overflow(k, n, &bytes))
		return next_reallocarray(p, k, n);
	return realloc(p, bytes);
}

EXPORT void *memalign(size_t a, size_t n)
{
	struct adapter_before b = adapter_before();

	return adapter_after(b, next_memalign(a, n), n);
}

EXPORT void *aligned_alloc(size_t a, size_t n)
{
	struct adapter_before b = adapter_before();

	return adapter_after(b, next_aligned_alloc(a, n), n);
}

EXPORT void *valloc(size_t n)
{
	struct adapter_before b = adapter_before();

	return adapter_after(b, next_valloc(n), n);
}

EXPORT void *pvalloc(size_t n)
{
	struct adapter_before b = adapter_before();

	return adapter_after(b, next_pvalloc(n), n);
}

EXPORT int posix_memalign(void **ret, size_t a, size_t n)
{
	struct adapter_before b = adapter_before();
	int err = next_posix_memalign(ret, a, n);

	if (!err)
		adapter_after(b, *ret, n);
	return err;
}

/* C23's: a C library without them has a free. */
EXPORT void free_sized(void *p, size_t n)
{
	adapter_free(p);
	if (next_free_sized == resolve_free_sized && !adapter_resolve("free_sized"))
		next_free(p);
	else
		next_free_sized(p, n);
}

EXPORT void free_aligned_sized(void *p, size_t a, size_t n)
{
	adapter_free(p);
	if (next_free_aligned_sized == resolve_free_aligned_sized &&
	    !adapter_resolve("free_aligned_sized"))
		next_free(p);
	else
		next_free_aligned_sized(p, a, n);
}
