/* SPDX-License-Identifier: GPL-2.0-only
 * What this machine and this user can record: one row a provider, best first within a capability.
 */
#ifndef MP_OUT_FEATURES_H
#define MP_OUT_FEATURES_H

#include <stddef.h>
#include <stdio.h>

struct feature {
	const char *capability, *provider, *stability;
	const char *status; /* usable, absent, untested */
	const char *grade; /* the best a number of it can have */
	const char *reason, *remedy; /* "" none */
};

/* Rows of one capability stand together. 0 or -errno. */
int features_json(FILE *f, const struct feature *rows, size_t n);
void features_table(FILE *f, const struct feature *rows, size_t n);

#endif
