/* SPDX-License-Identifier: GPL-2.0-only
 * Which rows are asked for.
 *   EXPR  = TEST | not EXPR | EXPR and EXPR | EXPR or EXPR | ( EXPR )
 *   TEST  = FIELD = TEXT, FIELD != TEXT, FIELD ~ REGEX, FIELD !~ REGEX, COLUMN < SIZE, <=, >, >=,
 * =, != FIELD = kind, name, process, pid, host, id, function (any of the stack), file (any of the
 * stack's) */
#ifndef MP_JOIN_FILTER_H
#define MP_JOIN_FILTER_H

#include "lib/join/join.h"

struct filter;

/* 0, -ENOMEM, or -EINVAL with the reason in msg. */
int filter_parse(const char *text, struct filter **ret_f, char *msg, size_t msg_len);
/* A comparison with what is unknown is false. */
int filter_match(const struct filter *f, const struct row *row);
/* Removes the other rows; totals stay those of the whole recording. */
void filter_report(const struct filter *f, struct report *r);
void filter_free(struct filter **f);

enum evidence { EVIDENCE_SAMPLED, EVIDENCE_INFERRED, EVIDENCE_EXACT };
/* "sampled", "inferred" or "exact"; -EINVAL. */
int evidence_parse(const char *text, enum evidence *ret);
/* Keeps of every row the parts that are at least so well known; what has none is unknown then. */
void evidence_keep(struct report *r, enum evidence weakest);

#endif
