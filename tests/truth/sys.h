// SPDX-License-Identifier: GPL-2.0-only
/* Inlined system calls for the truth scenarios: the function that asks is the innermost frame of
 * the stack. Shares nothing with lib/. */
#ifndef TRUTH_SYS_H
#define TRUTH_SYS_H

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INLINE	 static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

constexpr size_t PAGE = 4096;
constexpr size_t HUGE = 2ul << 20;

INLINE long sys(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret < 0 && ret > -4096) {
		errno = static_cast<int>(-ret);
		return -1;
	}
	return ret;
}

template <class T> INLINE long word(T v)
{
	return (long)v;
}

#endif
