/* SPDX-License-Identifier: GPL-2.0-only
 * Fixed-width names for both sides of the ring. Nothing else belongs here. */
#ifndef MP_SHARED_TYPES_H
#define MP_SHARED_TYPES_H

#ifdef __bpf__
#include "vmlinux.h" /* on the include path of the BPF side only */
#else
#include <linux/types.h>
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
#endif

#endif
