/* SPDX-License-Identifier: GPL-2.0-only
 * Two reports side by side: which owner grew, by how much, and whether that may be judged. */
#ifndef MP_JOIN_DIFF_H
#define MP_JOIN_DIFF_H

#include <stdio.h>
#include "lib/join/join.h"

/* Stocks as they are, flows per second of their recording. Sampled counts as inferred. */
struct diff_value {
	double exact, inferred, lo, hi;
	int known;
};

static inline double diff_total(const struct diff_value *v)
{
	return v->exact + v->inferred;
}

enum diff_match { DIFF_EXACT, DIFF_FUNCTION, DIFF_NEW, DIFF_GONE };
extern const char *const diff_match_names[];

struct diff_row {
	enum diff_match match;
	const struct row *row; /* of NEW, or of BASE when gone */
	struct diff_value base, next;
	double delta, lo, hi;
	int known; /* delta, lo and hi are there */
	int significant; /* lo and hi are on the same side of 0 */
};

enum diff_verdict { DIFF_PASSED, DIFF_FAILED, DIFF_UNDECIDED };

struct diff_rule {
	const char *text;
	size_t site_len; /* of the owner's name, which text begins with; 0: the total */
	int column, percent;
	double amount;
	/* diff_judge: */
	enum diff_verdict verdict;
	char reason[96];
	struct diff_value base, next;
};

struct diff {
	const struct report *base, *next;
	int column;
	struct diff_row *rows; /* largest change first */
	size_t nr_rows; /* that changed */
	size_t nr_all; /* those, and behind them the ones that did not */
	struct diff_rule *rules; /* the caller's */
	size_t nr_rules;
};

/* Compares one column of two reports, which must outlive the result. 0 or -ENOMEM. */
int diff_new(const struct report *base, const struct report *next, int column, struct diff **ret_d);
void diff_free(struct diff **d);
/* Total of a column over a whole report. */
struct diff_value diff_sum(const struct report *r, int column);
/* Why a column of the two cannot be judged; "" when it can. Returns buf. */
const char *diff_reason(const struct diff *d, int column, char *buf, size_t len);
/* A cost as it is compared. */
struct diff_value diff_value_of(const struct report *r, int column, const struct cost *c);
/* Owners were told by other means: their rows do not match, totals do. NULL: by the same. */
const char *diff_owners(const struct diff *d);
/* "[OWNER:]COLUMN>+N%" or "[OWNER:]COLUMN>+SIZE". -EINVAL malformed, -ENOENT no such column: then
 * *ret_near. */
int diff_rule_parse(const char *text, struct diff_rule *ret, const char **ret_near);
/* Factor of a suffix (K, MiB, ms) in a unit of cost_columns, 0 when it has no such suffix. */
double unit_factor(const char *suffix, const char *unit);
void diff_judge(const struct diff *d, struct diff_rule *rule);

/* lib/out: rows 0 prints all. */
int out_diff_table(FILE *f, const struct diff *d, unsigned int rows);
int out_diff_json(FILE *f, const struct diff *d);
/* A table for a pull request. */
int out_diff_markdown(FILE *f, const struct diff *d, unsigned int rows);
/* STACK BASE NEW, also of what did not change, for a differential flame graph. -ENODATA: the column
 * does not add up. */
int out_diff_folded(FILE *f, const struct diff *d);
/* One of the two, in a line: where, who, how long, until when. */
void out_side(FILE *f, const struct report *r);
/* A number of a column in words; flows are per second. Returns buf. */
const char *diff_amount(char *buf, size_t len, int column, int known, double v, int sign);

#endif
