/* SPDX-License-Identifier: GPL-2.0-only
 * The chain of evidence behind rows: who owns them and how that is known, where their pages were
 * counted, and each number with its bounds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

static void line(FILE *f, const char *what, const char *text)
{
	fprintf(f, "  %s ", what);
	text_put(f, text);
	fputc('\n', f);
}

static void stack(FILE *f, const struct row *row)
{
	u32 j;

	if (row_unwound_by(row))
		fprintf(f, "  stack, unwound by %s, %s:\n", row_unwound_by(row),
			row_unwound_end(row) ? row_unwound_end(row) : "end not known");
	for (j = 0; j < row->nr_frames; j++) {
		const struct frame *fr = &row->frames[j];

		fputs(fr->inlined ? "  (inlined) " : "  at ", f);
		text_put(f, fr->function ? fr->function : "[unknown]");
		fputc(' ', f);
		text_put(f, fr->file ? fr->file : "");
		if (fr->line)
			fprintf(f, ":%u", fr->line);
		fputs("  ", f);
		text_put(f, fr->module);
		fprintf(f, "+0x%llx\n", (unsigned long long)fr->offset);
	}
}

static void who(FILE *f, const struct row *row)
{
	fprintf(f, "%s: kind %s, ", row->id, origin_kind_names[row->kind]);
	if (row->host) {
		text_put(f, row->host);
		fputs(", ", f);
	}
	if (row->several) {
		fputs("several processes", f);
	} else {
		text_put(f, row->comm);
		fprintf(f, " (%u)", row->pid);
	}
	fprintf(f, ", %u mapping generation%s\n", row->generations,
		row->generations == 1 ? "" : "s");
	if (row->name)
		line(f, "named", row->name);
	if (row->resource)
		line(f, row->ruled ? "by a rule resource" : "resource", row->resource);
	if (row->ino)
		fprintf(f, "  object: device %u:%u, inode %llu\n", row->dev >> 20,
			row->dev & 0xfffff, (unsigned long long)row->ino);
	if (row->evidence)
		line(f, "by shape:", row->evidence);
	stack(f, row);
}

/* Which hook or walk the recording had for a capability. */
static void source(FILE *f, const struct report *r, const char *capability, const char *what)
{
	size_t i;

	for (i = 0; i < r->nr_hooks; i++) {
		if (!r->hooks[i].capability || strcmp(r->hooks[i].capability, capability))
			continue;
		fprintf(f, "  %s ", what);
		if (r->hooks[i].provider)
			text_put(f, r->hooks[i].provider);
		else
			fputs("not seen: ", f);
		if (r->hooks[i].provider && r->hooks[i].stability) {
			fputs(" (", f);
			text_put(f, r->hooks[i].stability);
			fputc(')', f);
		} else if (!r->hooks[i].provider) {
			text_put(f, r->hooks[i].reason);
		}
		fputc('\n', f);
	}
}

static void sources(FILE *f, const struct report *r, const struct out_opts *o)
{
	const struct check *c = &r->check[COST_RESIDENT];

	source(f, r, "map", "whose it is: mapping calls by");
	source(f, r, "alloc", "allocations by");
	source(f, r, "fault", "flows: page faults by");
	source(f, r, "snapshot", "stocks: pages by");
	if (r->picture_age_ns >= 1000000)
		fprintf(f, "  stocks are as of %.1f s before the end\n",
			(double)r->picture_age_ns / 1e9);
	if (c->judged)
		fprintf(f,
			"  the sum of all rows of this recording against the kernel: residual %s\n",
			out_amount(o, c->residual));
	if (r->lost)
		fprintf(f, "  %llu events were lost: what they concern is inferred\n",
			(unsigned long long)r->lost);
}

static void numbers(FILE *f, const struct row *row)
{
	int c;

	for (c = 0; c < COST_MAX; c++) {
		const struct cost *v = &row->cost[c];

		if (!v->known)
			continue;
		fprintf(f, "  %-10s %lld %s: exact %lld, inferred %lld", cost_columns[c].name,
			(long long)cost_value(v), cost_columns[c].unit, (long long)v->exact,
			(long long)v->inferred);
		if (v->sampled)
			fprintf(f, ", sampled %lld", (long long)v->sampled);
		if (cost_is_open(v))
			fprintf(f, ", truth from %lld to %lld", (long long)cost_lo(v),
				(long long)cost_hi(v));
		fprintf(f, " - %s\n", cost_columns[c].doc);
	}
}

static void why_row(FILE *f, const struct report *r, const struct row *row,
		    const struct out_opts *o)
{
	who(f, row);
	sources(f, r, o);
	fputs("  ", f);
	out_sentence(f, row, o);
	fputc('\n', f);
	numbers(f, row);
}

static int has_id(const struct row *row, const char *id)
{
	const char *at = strchr(id, '@');
	size_t len = at ? (size_t)(at - id) : strlen(id);
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", row->pid);
	return !strncmp(row->id, id, len) && !row->id[len] && (!at || !strcmp(at + 1, pid));
}

/* What the table calls it, or the function it is of. */
static int has_name(const struct row *row, const char *name)
{
	const char *of = row->name ? row->name : row_function(row);

	return of && !strcmp(of, name);
}

int out_why(FILE *f, const struct report *r, const char *what, const struct out_opts *o)
{
	int (*is_it)(const struct row *row, const char *what) = has_id;
	size_t i, found = 0, more = 0;

	for (i = 0; i < r->nr_rows && !has_id(&r->rows[i], what); i++)
		;
	if (i == r->nr_rows)
		is_it = has_name;
	for (i = 0; i < r->nr_rows; i++) {
		if (!is_it(&r->rows[i], what))
			continue;
		if (o->rows && found == o->rows) {
			more++;
			continue;
		}
		if (found++)
			fputc('\n', f);
		why_row(f, r, &r->rows[i], o);
	}
	if (more)
		fprintf(f, "\n  ... %zu more rows; --rows 0 shows all\n", more);
	return found ? 0 : -ENOENT;
}
