/* SPDX-License-Identifier: GPL-2.0-only
 * Which allocations are sampled: each byte with the same small chance, so that one of n bytes is
 * with 1 - e^(-n/interval). Needs no library: it runs inside of other programs' malloc. */
#ifndef MP_ADAPTER_SAMPLER_H
#define MP_ADAPTER_SAMPLER_H

#include "bpf/shared/types.h"

/* All zero: not started. */
struct sampler {
	u64 left; /* bytes until the next sample, itself included */
	u64 state; /* of the random numbers, 0: not started */
};

/* interval: bytes between samples in the mean; 1: every allocation is one. */
void sampler_start(struct sampler *s, u64 seed, u64 interval);
/* An allocation of n bytes, for which it does not last or has not started: is it sampled? */
int sampler_due(struct sampler *s, u64 n, u64 interval);
/* The bytes that a sampled allocation of n bytes stands for. */
u64 sampler_weight(u64 n, u64 interval);

/* Nearly every call ends here: s lasts for n bytes more. */
static inline int sampler_lasts(struct sampler *s, u64 n)
{
	if (__builtin_expect(n >= s->left, 0))
		return 0;
	s->left -= n;
	return 1;
}

#endif
