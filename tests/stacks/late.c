/* SPDX-License-Identifier: GPL-2.0-only
 * A library that is loaded late. */
int late(int n);

__attribute__((noinline)) int late(int n)
{
	volatile int v[8] = {n};

	return n > 0 ? late(n - 1) + v[n % 8] : v[0];
}
