/* SPDX-License-Identifier: GPL-2.0-only
 * Printers: rows and columns in, text out. They know no events and compute no costs. */
#ifndef MP_OUT_OUT_H
#define MP_OUT_OUT_H

#include <stdio.h>
#include "lib/join/join.h"

/* A JSON string whatever the bytes: a path need not be UTF-8. null for NULL. For the printers of
 * lib/out. */
struct json_t;
struct json_t *json_text(const char *s);

struct out_opts {
	int column; /* sorted by */
	const int *columns; /* shown, -1 ends */
	int bytes; /* plain bytes instead of MiB */
	unsigned int rows; /* 0 all */
	const char *group;
};

/* The recorded cgroup (memcg not NULL): lines of the contract screen, and recording.cgroups. */
void out_cgroup(FILE *f, const struct report *r, const struct out_opts *o);
struct json_t *out_cgroups_json(const struct report *r);
/* Bytes in words; good for the next fifteen calls. */
const char *out_amount(const struct out_opts *o, s64 v);

int out_table(FILE *f, const struct report *r, const struct out_opts *o);
int out_folded(FILE *f, const struct report *r, int column);
int out_json(FILE *f, const struct report *r, const struct out_opts *o);
/* why.c: the chain of evidence behind the rows of an id, or of ID@PID: one process has an id once.
 * -ENOENT when there is none. */
int out_why(FILE *f, const struct report *r, const char *id);

#endif
