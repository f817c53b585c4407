/* SPDX-License-Identifier: GPL-2.0-only
 * How far a total that was estimated from samples may be off. An allocation of the sample stands
 * for w others like it: the total of what they have, y each, is the sum of w y, its variance that
 * of w (w - 1) y^2 (Horvitz and Thompson, with samples that do not depend on each other). */
#ifndef MP_JOIN_ESTIMATE_H
#define MP_JOIN_ESTIMATE_H

/* Between these the truth lies at 95%: the score interval of a count, of things as large as the
 * variance says they are. It holds for a handful of samples, too. */
double estimate_lo(double total, double variance);
double estimate_hi(double total, double variance);

#endif
