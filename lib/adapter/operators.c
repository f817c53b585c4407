/* SPDX-License-Identifier: GPL-2.0-only
 * C++'s operators, by their mangled names, and jemalloc's own functions: some allocators do not
 * come by malloc and free there. An operator may throw: nothing here has to be undone then. */
#include "lib/adapter/adapter.h"

#define NOTHROW const void *nothrow

/* clang-format off */
#define OPERATOR_NEW(name, params, args) \
	NEXT(void *, name, params, args) \
	EXPORT void *name params; \
	EXPORT void *name params \
	{ \
		struct adapter_before b = adapter_before(); \
		return adapter_after(b, next_##name args, n); \
	}

#define OPERATOR_DELETE(name, params, args) \
	NEXT(void, name, params, args) \
	EXPORT void name params; \
	EXPORT void name params \
	{ \
		adapter_free(p); \
		next_##name args; \
	}

OPERATOR_NEW(_Znwm, (size_t n), (n))
OPERATOR_NEW(_Znam, (size_t n), (n))
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t n, NOTHROW), (n, nothrow))
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t n, NOTHROW), (n, nothrow))
OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t n, size_t a), (n, a))
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t n, size_t a), (n, a))
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, NOTHROW), (n, a, nothrow))
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, NOTHROW), (n, a, nothrow))
OPERATOR_DELETE(_ZdlPv, (void *p), (p))
OPERATOR_DELETE(_ZdaPv, (void *p), (p))
OPERATOR_DELETE(_ZdlPvm, (void *p, size_t n), (p, n))
OPERATOR_DELETE(_ZdaPvm, (void *p, size_t n), (p, n))
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (void *p, NOTHROW), (p, nothrow))
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (void *p, NOTHROW), (p, nothrow))
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (void *p, size_t a), (p, a))
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (void *p, size_t a), (p, a))
OPERATOR_DELETE(_ZdlPvmSt11align_val_t, (void *p, size_t n, size_t a), (p, n, a))
OPERATOR_DELETE(_ZdaPvmSt11align_val_t, (void *p, size_t n, size_t a), (p, n, a))
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, NOTHROW), (p, a, nothrow))
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, NOTHROW), (p, a, nothrow))

OPERATOR_NEW(mallocx, (size_t n, int flags), (n, flags))
OPERATOR_DELETE(dallocx, (void *p, int flags), (p, flags))
OPERATOR_DELETE(sdallocx, (void *p, size_t n, int flags), (p, n, flags))
/* clang-format on */

/* The old block is no more, unless this fails. */
NEXT(void *, rallocx, (void *p, size_t n, int flags), (p, n, flags))

EXPORT void *rallocx(void *p, size_t n, int flags);
EXPORT void *rallocx(void *p, size_t n, int flags)
{
	struct adapter_before b = adapter_before();
	u64 size;
	int was_freed = live_may_be(p) && adapter_forget(p, &size);
	void *q = next_rallocx(p, n, flags);

	if (was_freed && !q)
		adapter_restore(p, size);
	return adapter_after(b, q, n);
}
