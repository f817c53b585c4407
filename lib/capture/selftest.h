/* SPDX-License-Identifier: GPL-2.0-only
 * A program that loads and attaches may still see nothing, or something else than it stands for: on
 * kernels before 6.2 the rss counters are settled in batches and no event commits a fault. A child
 * does a known little work; the events must tell it. */
#ifndef MP_CAPTURE_SELFTEST_H
#define MP_CAPTURE_SELFTEST_H

#include <stddef.h>

struct session;

enum selftest_row { SELFTEST_MAP, SELFTEST_FAULT, SELFTEST_ROWS };

struct selftest {
	char wrong[SELFTEST_ROWS][96]; /* what came out wrong; "" for a row that passed */
};

/* Right after session_open, before any process is followed. 0 or -errno when it could not be run.
 */
int selftest_run(struct session *s, struct selftest *ret_t);

#endif
