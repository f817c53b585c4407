/* SPDX-License-Identifier: GPL-2.0-only
 * Rules over the difference of two reports: what cannot be judged never passes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/diff.h"

static int reason_in(const struct report *r, const char *which, int column, char *buf, size_t len)
{
	const struct cost_column *c = &cost_columns[column];

	if (c->kind == COST_STOCK && !r->has_walk)
		return snprintf(buf, len, "%s has no picture: stocks are unknown", which);
	if (cost_absent(r, (enum cost_id)column))
		return snprintf(buf, len, "%s: %s", which, cost_absent(r, (enum cost_id)column));
	if (!r->total[column].known)
		return snprintf(buf, len, "%s has no evidence of %s", which, c->name);
	if (c->kind == COST_FLOW && !r->duration_ns)
		return snprintf(buf, len, "%s has no duration", which);
	if (r->lost)
		return snprintf(buf, len, "%s lost %llu events", which,
				(unsigned long long)r->lost);
	if (r->truncated)
		return snprintf(buf, len, "%s is cut short: its recorder was killed", which);
	return 0;
}

const char *diff_reason(const struct diff *d, int column, char *buf, size_t len)
{
	buf[0] = 0;
	if (!reason_in(d->base, "base", column, buf, len))
		reason_in(d->next, "new", column, buf, len);
	return buf;
}

double unit_factor(const char *suffix, const char *unit)
{
	static const struct {
		const char *unit, *suffix;
		double factor;
	} all[] = {
		{"B", "B", 1},
		{"B", "K", 1024},
		{"B", "KiB", 1024},
		{"B", "M", 1048576},
		{"B", "MiB", 1048576},
		{"B", "G", 1073741824},
		{"B", "GiB", 1073741824},
		{"B", "T", 1099511627776},
		{"B", "TiB", 1099511627776},
		{"ns", "ns", 1},
		{"ns", "us", 1e3},
		{"ns", "ms", 1e6},
		{"ns", "s", 1e9},
		{"ns", "m", 60e9},
		{"ns", "h", 3600e9},
	};
	size_t i;

	if (!*suffix)
		return 1;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].unit, unit) && !strcmp(all[i].suffix, suffix))
			return all[i].factor;
	return 0;
}

int diff_rule_parse(const char *text, struct diff_rule *ret, const char **ret_near)
{
	const char *op = strstr(text, ">+"), *number = op ? op + 2 : NULL;
	const char *colon = op ? memrchr(text, ':', (size_t)(op - text)) : NULL;
	const char *column = colon ? colon + 1 : text;
	size_t len = op ? (size_t)(op - column) : 0;
	char name[32], *end;
	double f;

	/* strtod alone would take spaces, signs, hex, inf and nan. */
	if (!len || len >= sizeof(name) || !strspn(number, "0123456789") ||
	    strpbrk(number, "xXpP") || colon == text)
		return -EINVAL;
	memset(ret, 0, sizeof(*ret));
	ret->text = text;
	ret->amount = strtod(number, &end);
	ret->percent = !strcmp(end, "%");
	ret->site_len = colon ? (size_t)(colon - text) : 0;
	memcpy(name, column, len);
	name[len] = 0;
	if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")])
		return -EINVAL;
	ret->column = cost_find(name, ret_near);
	if (ret->column < 0)
		return -ENOENT;
	f = ret->percent ? 1 : unit_factor(end, cost_columns[ret->column].unit);
	ret->amount *= f;
	return f > 0 ? 0 : -EINVAL;
}

/* All that one owner has, by what the table calls it or its function. Returns how many rows. */
static size_t sum_site(const struct report *r, const struct diff_rule *rule, struct diff_value *ret)
{
	struct cost sum = {.known = 1};
	size_t i, n = 0;

	for (i = 0; i < r->nr_rows; i++) {
		const struct row *row = &r->rows[i];
		const struct cost *c = &row->cost[rule->column];
		const char *name = row->name ? row->name : row_function(row);

		if (!name || strlen(name) != rule->site_len ||
		    memcmp(name, rule->text, rule->site_len))
			continue;
		n++;
		sum.exact += c->exact;
		sum.inferred += c->inferred + c->sampled;
		sum.counted += c->counted;
		sum.hi += cost_hi(c);
		sum.open |= c->open;
		sum.known &= c->known;
	}
	*ret = diff_value_of(r, rule->column, &sum);
	return n;
}

/* Why what one owner has cannot be judged; "" when it can. */
static void judge_site(const struct diff *d, struct diff_rule *rule)
{
	size_t b = sum_site(d->base, rule, &rule->base), n = sum_site(d->next, rule, &rule->next);

	if (!b && !n)
		snprintf(rule->reason, sizeof(rule->reason), "neither has an owner of this name");
	else if (!rule->base.known || !rule->next.known)
		snprintf(rule->reason, sizeof(rule->reason), "%s has no evidence of it there",
			 rule->base.known ? "new" : "base");
}

void diff_judge(const struct diff *d, struct diff_rule *rule)
{
	double base, growth;

	rule->base = diff_sum(d->base, rule->column);
	rule->next = diff_sum(d->next, rule->column);
	rule->verdict = DIFF_UNDECIDED;
	diff_reason(d, rule->column, rule->reason, sizeof(rule->reason));
	if (!rule->reason[0] && rule->site_len)
		judge_site(d, rule);
	if (rule->reason[0])
		return;
	base = diff_total(&rule->base);
	growth = diff_total(&rule->next) - base;
	if (rule->percent && base < 0) {
		snprintf(rule->reason, sizeof(rule->reason), "base is negative: no percentage");
		return;
	}
	/* From nothing, any growth is more than any percentage. */
	if (growth > (rule->percent ? base * rule->amount / 100 : rule->amount))
		rule->verdict = DIFF_FAILED;
	else
		rule->verdict = DIFF_PASSED;
}
