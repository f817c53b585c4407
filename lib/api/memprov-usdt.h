/* SPDX-License-Identifier: MIT
 * Names for memory, told to whoever listens. This one header is all: copy it, or use the installed
 * one; it needs no library. Each call is a no-operation instruction with its arguments in
 * registers, until memprov, or any other reader of USDT probes, puts a probe there.
 *
 *	memprov_resource_begin("cache/shard-7", addr, len);	this range is shard 7
 *	memprov_use("cache/shard-7");				it serves a request
 *	memprov_resource_end("cache/shard-7", addr, len);	it is shard 7 no more
 *	memprov_thread("tenant-a");	what this thread maps from now on; NULL: nobody's
 *
 * A name has at most 122 bytes. A range that is named again has the later name; what is unmapped or
 * moved has none. */
#ifndef MEMPROV_USDT_H
#define MEMPROV_USDT_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(MEMPROV_USDT_OFF)

/* A probe named NAME of provider memprov: a nop of one byte, and a note that says where it is and
 * that the arguments ARGS lie in registers. Of a nop of five bytes Linux 6.18 makes a call, which
 * writes over what a leaf function keeps below its stack pointer, and a forked child dies of. */
#define MEMPROV_USDT_PROBE(NAME, ARGS, ...)                                       \
	__asm__ __volatile__("990: nop\n"                                         \
			     ".pushsection .note.stapsdt, \"?\", \"note\"\n"      \
			     ".balign 4\n"                                        \
			     ".4byte 992f - 991f, 994f - 993f, 3\n"               \
			     "991: .asciz \"stapsdt\"\n"                          \
			     "992: .balign 4\n"                                   \
			     "993: .8byte 990b, _.stapsdt.base, 0\n"              \
			     ".asciz \"memprov\"\n"                               \
			     ".asciz \"" NAME "\"\n"                              \
			     ".asciz \"" ARGS "\"\n"                              \
			     "994: .balign 4\n"                                   \
			     ".popsection\n"                                      \
			     ".ifndef _.stapsdt.base\n"                           \
			     ".pushsection .stapsdt.base, \"aG\", \"progbits\", " \
			     ".stapsdt.base, comdat\n"                            \
			     ".weak _.stapsdt.base\n"                             \
			     ".hidden _.stapsdt.base\n"                           \
			     "_.stapsdt.base: .space 1\n"                         \
			     ".size _.stapsdt.base, 1\n"                          \
			     ".popsection\n"                                      \
			     ".endif\n" ::__VA_ARGS__                             \
			     : "memory")

/* A probe cannot wait for a page to be read in: the name is there once it was looked at. */
static inline void memprov_usdt_look(const char *name)
{
	if (name)
		(void)*(const volatile char *)name;
}

static inline void memprov_resource_begin(const char *name, const void *addr, size_t len)
{
	memprov_usdt_look(name);
	MEMPROV_USDT_PROBE("resource_begin", "8@%%rdi 8@%%rsi 8@%%rdx", "D"(name), "S"(addr),
			   "d"(len));
}

static inline void memprov_resource_end(const char *name, const void *addr, size_t len)
{
	memprov_usdt_look(name);
	MEMPROV_USDT_PROBE("resource_end", "8@%%rdi 8@%%rsi 8@%%rdx", "D"(name), "S"(addr),
			   "d"(len));
}

static inline void memprov_use(const char *name)
{
	memprov_usdt_look(name);
	MEMPROV_USDT_PROBE("use", "8@%%rdi", "D"(name));
}

static inline void memprov_thread(const char *name)
{
	memprov_usdt_look(name);
	MEMPROV_USDT_PROBE("thread", "8@%%rdi", "D"(name));
}

#else

static inline void memprov_resource_begin(const char *name, const void *addr, size_t len)
{
	(void)name, (void)addr, (void)len;
}

static inline void memprov_resource_end(const char *name, const void *addr, size_t len)
{
	(void)name, (void)addr, (void)len;
}

static inline void memprov_use(const char *name)
{
	(void)name;
}

static inline void memprov_thread(const char *name)
{
	(void)name;
}

#endif
#endif
