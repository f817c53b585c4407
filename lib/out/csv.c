/* SPDX-License-Identifier: GPL-2.0-only
 * Comma-separated values (RFC 4180, lines end with LF): a line for each row, and of each column its
 * value and its grade; both are empty where there is no evidence. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

static int field(FILE *f, const char *s)
{
	char *clean = text_clean(s ? s : "");
	const char *c;

	if (!clean)
		return -ENOMEM;
	if (clean[strcspn(clean, ",\"\n\r")]) {
		fputc('"', f);
		for (c = clean; *c; c++)
			fprintf(f, *c == '"' ? "\"\"" : "%c", *c);
		fputc('"', f);
	} else {
		fputs(clean, f);
	}
	free(clean);
	return 0;
}

struct stack {
	FILE *f;
	int n;
};

static int step(void *ctx, const char *name, const struct frame *frame)
{
	struct stack *s = ctx;

	if (frame && s->n++)
		fputc(';', s->f);
	for (; frame && *name; name++)
		fputc(*name == ';' ? ':' : *name, s->f);
	return 0;
}

/* Functions, root first. */
static int stack(FILE *f, const struct row *row)
{
	char *text = NULL;
	size_t len;
	struct stack s = {open_memstream(&text, &len), 0};
	int err;

	if (!s.f)
		return -ENOMEM;
	out_path(row, 0, step, &s);
	err = fclose(s.f) ? -ENOMEM : field(f, text);
	free(text);
	return err;
}

static int row_text(FILE *f, const struct row *row, const int *columns, int hosts)
{
	int err;

	fprintf(f, "%s,%s,", row->id, origin_kind_names[row->kind]);
	err = field(f, row->name);
	fputc(',', f);
	if (!err)
		err = field(f, row->comm);
	fputc(',', f);
	if (row->pid)
		fprintf(f, "%u", row->pid);
	fputc(',', f);
	if (hosts && !err) {
		err = field(f, row->host);
		fputc(',', f);
	}
	if (!err)
		err = stack(f, row);
	for (; *columns >= 0; columns++) {
		const struct cost *c = &row->cost[*columns];

		if (c->known)
			fprintf(f, ",%lld,%s", (long long)cost_value(c), out_grade(c));
		else
			fputs(",,", f);
	}
	fputc('\n', f);
	return err;
}

int out_csv(FILE *f, const struct report *r, const struct out_opts *o)
{
	const int *c;
	size_t i;
	int err = 0, hosts = r->nr_parts > 0;

	fprintf(f, "id,kind,name,process,pid,%sstack", hosts ? "host," : "");
	for (c = o->columns; *c >= 0; c++)
		fprintf(f, ",%s,%s grade", cost_columns[*c].name, cost_columns[*c].name);
	fputc('\n', f);
	for (i = 0; i < r->nr_rows && !err && !(o->rows && i == o->rows); i++)
		err = row_text(f, &r->rows[i], o->columns, hosts);
	return err;
}
