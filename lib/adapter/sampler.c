/* SPDX-License-Identifier: GPL-2.0-only */
#include "lib/adapter/sampler.h"

/* xorshift64*: the high bits are good enough for a distance. */
static u64 next_random(struct sampler *s)
{
	s->state ^= s->state >> 12;
	s->state ^= s->state << 25;
	s->state ^= s->state >> 27;
	return s->state * 0x2545f4914f6cdd1dull;
}

/* ln(x) of 0 < x: of the exponent, and of the mantissa m by 2 artanh((m - 1) / (m + 1)). */
static double natural_log(double x)
{
	union {
		double d;
		u64 u;
	} v = {.d = x};
	int exponent = (int)(v.u >> 52) - 1022, i;
	double z, term, sum = 0;

	v.u = (v.u & 0xfffffffffffffull) | 1022ull << 52; /* 0.5 to 1 */
	z = (v.d - 1) / (v.d + 1);
	for (term = z, i = 1; i < 40; i += 2, term *= z * z)
		sum += term / i;
	return 2 * sum + exponent * 0.69314718055994530942;
}

/* 1 - e^-x of x >= 0, without the cancellation that would spoil a small x. */
static double chance(double x)
{
	double term, sum = 0;
	int halved = 0, i;

	if (x > 40)
		return 1;
	for (; x > 0.5; x /= 2)
		halved++;
	for (term = x, i = 2; i < 20; term *= -x / i, i++)
		sum += term;
	/* (1 - c) of the half, squared, is (1 - c) of the whole. */
	for (; halved; halved--)
		sum = sum * (2 - sum);
	return sum;
}

/* The memory of what was there before does not matter: it starts anew behind each sample. */
static u64 distance(struct sampler *s, u64 interval)
{
	double uniform = (double)((next_random(s) >> 11) + 1) / (double)(1ull << 53);
	double d = -natural_log(uniform) * (double)interval;

	return d < 1e18 ? (u64)d + 1 : (u64)1e18;
}

void sampler_start(struct sampler *s, u64 seed, u64 interval)
{
	/* Seeds that differ in a few bits must not draw alike. */
	seed = (seed ^ seed >> 31) * 0x7fb5d329728ea185ull;
	seed = (seed ^ seed >> 27) * 0x81dadef4bc2dd44dull;
	s->state = (seed ^ seed >> 33) | 1;
	s->left = interval > 1 ? distance(s, interval) : 0;
}

int sampler_due(struct sampler *s, u64 n, u64 interval)
{
	if (interval <= 1)
		return 1;
	if (sampler_lasts(s, n))
		return 0;
	s->left = distance(s, interval);
	return 1;
}

u64 sampler_weight(u64 n, u64 interval)
{
	if (interval <= 1 || !n)
		return n;
	return (u64)((double)n / chance((double)n / (double)interval) + 0.5);
}
