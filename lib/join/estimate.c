/* SPDX-License-Identifier: GPL-2.0-only */
#include <math.h>
#include "lib/join/estimate.h"

#define Z 1.959964

static double bound(double total, double variance, double side)
{
	double thing, at;

	if (total <= 0)
		return 0;
	thing = variance / total;
	at = total + Z * Z * thing / 2 + side * Z * sqrt(variance + Z * Z * thing * thing / 4);
	return at > 0 ? at : 0;
}

double estimate_lo(double total, double variance)
{
	return bound(total, variance, -1);
}

double estimate_hi(double total, double variance)
{
	return bound(total, variance, 1);
}
