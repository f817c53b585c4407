/* SPDX-License-Identifier: GPL-2.0-only
 * diff as a Markdown table, for a pull request. */
#include <errno.h>
#include <stdlib.h>
#include "lib/join/diff.h"
#include "lib/out/out.h"

/* Inside a code span of a table cell. */
static void code(FILE *f, const char *s)
{
	fputc('`', f);
	for (; *s; s++) {
		if (*s == '|')
			fputs("\\|", f);
		else
			fputc(*s == '`' ? '\'' : (unsigned char)*s < 0x20 ? '?' : *s, f);
	}
	fputc('`', f);
}

static void numbers(FILE *f, const struct diff *d, int known, double delta,
		    const struct diff_value *base, const struct diff_value *next)
{
	char a[48], b[48], c[48];

	fprintf(f, "| %s | %s | %s ", diff_amount(a, sizeof(a), d->column, known, delta, 1),
		diff_amount(b, sizeof(b), d->column, base->known, diff_total(base), 0),
		diff_amount(c, sizeof(c), d->column, next->known, diff_total(next), 0));
}

static int row_text(FILE *f, const struct diff *d, const struct diff_row *row)
{
	char *owner = out_owner_text(row->row);
	int err = owner ? 0 : -ENOMEM;
	/* Bounds that allow no change. */
	const char *doubt = row->known && !row->significant ? " (may be none)" : "";

	if (owner) {
		numbers(f, d, row->known, row->delta, &row->base, &row->next);
		fprintf(f, "| %s%s | ", diff_match_names[row->match], doubt);
		code(f, owner);
		fputs(" |\n", f);
	}
	free(owner);
	return err;
}

static void rules(FILE *f, const struct diff *d)
{
	static const char *const words[] = {
		[DIFF_PASSED] = "passed",
		[DIFF_FAILED] = "**failed**",
		[DIFF_UNDECIDED] = "**undecided**",
	};
	char a[48], b[48];
	size_t i;

	for (i = 0; i < d->nr_rules; i++) {
		const struct diff_rule *r = &d->rules[i];

		fprintf(f, "- %s: ", words[r->verdict]);
		code(f, r->text);
		if (r->verdict == DIFF_UNDECIDED)
			fprintf(f, ": %s\n", r->reason);
		else
			fprintf(f, ": %s to %s\n",
				diff_amount(a, sizeof(a), r->column, 1, diff_total(&r->base), 0),
				diff_amount(b, sizeof(b), r->column, 1, diff_total(&r->next), 0));
	}
	if (d->nr_rules)
		fputc('\n', f);
}

static int side(FILE *f, const char *which, const struct report *r)
{
	char *text = NULL;
	size_t len;
	FILE *line = open_memstream(&text, &len);

	if (!line)
		return -ENOMEM;
	out_side(line, r);
	if (fclose(line)) {
		free(text);
		return -ENOMEM;
	}
	fprintf(f, "- %s: ", which);
	code(f, text);
	fputc('\n', f);
	free(text);
	return 0;
}

int out_diff_markdown(FILE *f, const struct diff *d, unsigned int rows)
{
	struct diff_value b = diff_sum(d->base, d->column), n = diff_sum(d->next, d->column);
	size_t i, shown = rows && rows < d->nr_rows ? rows : d->nr_rows;
	char reason[96];
	int err = 0;

	fprintf(f, "### memprov: %s%s\n\n", cost_columns[d->column].name,
		cost_columns[d->column].kind == COST_FLOW ? ", per second of each recording" : "");
	err = side(f, "base", d->base);
	if (!err)
		err = side(f, "new", d->next);
	fputc('\n', f);
	rules(f, d);
	if (diff_owners(d))
		fprintf(f, "Owners differ by how they were told: %s; totals compare.\n\n",
			diff_owners(d));
	if (*diff_reason(d, d->column, reason, sizeof(reason)))
		fprintf(f, "Not comparable: %s.\n\n", reason);
	fputs("| delta | base | new | match | owner |\n|---:|---:|---:|---|---|\n", f);
	numbers(f, d, b.known && n.known, diff_total(&n) - diff_total(&b), &b, &n);
	fputs("| | total |\n", f);
	for (i = 0; i < shown && !err; i++)
		err = row_text(f, d, &d->rows[i]);
	if (shown < d->nr_rows)
		fprintf(f, "\n%zu more owners changed.\n", d->nr_rows - shown);
	return err;
}
