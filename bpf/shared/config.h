/* SPDX-License-Identifier: GPL-2.0-only
 * Map sizes and the plain structs both sides share beside the records. */
#ifndef MP_SHARED_CONFIG_H
#define MP_SHARED_CONFIG_H

#include "types.h"
#include "event.h"

#define MP_TOPO_RING_BYTES   (4u << 20)
#define MP_DETAIL_RING_BYTES (16u << 20)
#define MP_ALLOC_RING_BYTES  (16u << 20)
#define MP_MAX_TARGETS	     4096
#define MP_MAX_STACKS	     65536
#define MP_FILTER_WORDS	     1024u
#define MP_KNOWN_STACKS	     4
#define MP_COPIES_A_SECOND   16384u /* of stacks, to be compared with those already sent */
#define MP_SENT_A_SECOND     1024u
#define MP_MAX_RESOURCES     16384
#define MP_MAX_THREADS	     16384 /* where the kernel does not keep what we know of each */
#define MP_SEQ_STEP	     2048u /* there; more than twice the processors */

/* In a value of the targets map: the process shares a space it did not bring. */
#define MP_TARGET_JOINED 0x80000000u

/* How the arguments of an allocator's function are read; what its probe's cookie holds, with the
 * family above. */
enum mp_alloc_args {
	MP_ARGS_SIZE = 0, /* malloc(size) */
	MP_ARGS_COUNT_SIZE = 1, /* calloc(n, size) */
	MP_ARGS_ALIGN_SIZE = 2, /* memalign(align, size) */
	MP_ARGS_OUT_ALIGN_SIZE = 3, /* posix_memalign(&p, align, size) */
	MP_ARGS_OLD_SIZE = 4, /* realloc(p, size) */
	MP_ARGS_OLD_COUNT_SIZE = 5, /* reallocarray(p, n, size) */
	MP_ARGS_OLD = 6, /* free(p) */
	MP_ARGS_UNSEEN = 7, /* C++'s new, which may throw: see sites.c */
	MP_ARGS_SAMPLE = 8, /* otel_memory:alloc */
	MP_ARGS_SAMPLE_END = 9, /* otel_memory:free */
	MP_ARGS_SAMPLER = 10, /* memprov_adapter:sampler */
	MP_ARGS_SAMPLE_LOST = 11, /* memprov_adapter:lost */
	MP_ARGS_MAX = 12,
};

/* Where a static probe has an argument: in a register, or in memory that one points into. Three of
 * them are its cookie; 0: it has not so many. */
#define MP_USDT_BITS		      21
#define MP_USDT_REG		      0xfu /* ax bx cx dx si di bp sp r8-r15 */
#define MP_USDT_MEMORY		      0x10u
#define MP_USDT_SIGNED		      0x20u
#define MP_USDT_LOG(n)		      ((n) << 6) /* of its size, 0 to 3 */
#define MP_USDT_THERE		      0x100u
#define MP_USDT_OFFSET		      9 /* first bit of 12, signed */
#define MP_USDT_REACH		      2048

#define MP_ALLOC_COOKIE(args, family) ((u64)(family) << 8 | (args))

/* When a resource was used last. */
struct mp_resource_key {
	u32 space;
	char name[MP_RESOURCE_NAME];
};

struct mp_resource_use {
	u64 last_ns, uses;
};

/* Behind RESOURCE and RESOURCE_END in the ring. */
struct mp_resource_text {
	char name[MP_RESOURCE_NAME + 4];
};

struct mp_space_loss {
	u64 lost[MP_CLASS_MAX];
	u64 map_ops; /* mapping calls, counted on entry and on return: a walk looks for changes */
	u64 code; /* files whose code was mapped: what an address is called is of a time */
	s64 open[2]; /* mapping calls under way that entered in an even, an odd epoch */
};

#endif
