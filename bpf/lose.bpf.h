/* SPDX-License-Identifier: GPL-2.0-only
 * Events lost on purpose, so that tests see what a loss does to a report: counted as if a ring had
 * no room. Of a recording that does not ask for it the verifier removes all of this. */
#ifndef MP_LOSE_BPF_H
#define MP_LOSE_BPF_H

#include "shared/config.h"
#include <bpf/bpf_helpers.h>

/* Parts of 65536 of a ring's events; log2 of how many neighbours in the order share a fate. */
const volatile u32 cfg_lose_topology = 0;
const volatile u32 cfg_lose_detail = 0;
const volatile u32 cfg_lose_burst = 0;
const volatile u32 cfg_lose_seed = 0;
u32 mp_losing = 0; /* not while the hooks are tried out */

static __always_inline int lose(u32 rate, u64 seq)
{
	u64 h;

	if (!rate || !mp_losing)
		return 0;
#ifdef MP_BASIC
	seq /= MP_SEQ_STEP;
#endif
	h = ((seq >> (cfg_lose_burst & 31)) + cfg_lose_seed) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
	return h >> 48 < rate;
}

#endif
