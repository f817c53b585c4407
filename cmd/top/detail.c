/* SPDX-License-Identifier: GPL-2.0-only
 * The pane about one row: a sentence, its numbers with their grades, its history, its stack. */
#define _GNU_SOURCE
#include <stdlib.h>
#include "cmd/top/state.h"
#include "lib/text/text.h"

static void numbers(FILE *f, const struct screen *s, const struct row *row)
{
	int c, n = 0;

	for (c = 0; c < COST_MAX; c++) {
		const struct cost *v = &row->cost[c];

		if (!v->known || !(cost_value(v) || cost_hi(v)))
			continue;
		fprintf(f, "%s%s %s %s", n++ ? ", " : "numbers: ", cost_columns[c].name,
			out_number(&s->out, c, cost_value(v)), out_grade(v));
		if (cost_lo(v) != cost_hi(v))
			fprintf(f, " (%s to %s)", out_number(&s->out, c, cost_lo(v)),
				out_number(&s->out, c, cost_hi(v)));
	}
	if (n)
		fputc('\n', f);
}

static void past(FILE *f, struct screen *s, const struct row *row)
{
	struct past p;
	unsigned int i;

	history_get(s->history, row, &p);
	if (p.n < 2)
		return;
	fprintf(f, "%s in the last %u pictures:", cost_columns[s->out.column].name, p.n);
	for (i = 0; i < p.n; i++)
		fprintf(f, " %s%s", out_number(&s->out, s->out.column, p.value[i]),
			i + 1 < p.n ? "," : "\n");
}

static void stack(FILE *f, const struct row *row)
{
	char label[FRAME_LABEL];
	u32 i;

	for (i = 0; i < row->nr_frames; i++) {
		const struct frame *fr = &row->frames[i];

		fputs(fr->inlined ? "  (inlined) " : "  at ", f);
		text_put(f, frame_label(fr, label, sizeof(label)));
		if (fr->file && fr->line) {
			fputs("  ", f);
			text_put(f, fr->file);
			fprintf(f, ":%u", fr->line);
		}
		if (fr->module) {
			fputs("  ", f);
			text_put(f, fr->module);
			fprintf(f, "+0x%llx", (unsigned long long)fr->offset);
		}
		fputc('\n', f);
	}
}

char *screen_detail(struct screen *s, const struct row *row)
{
	char *text = NULL, *owner = out_owner_text(row);
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		fprintf(f, "%s  id %s\n", owner ? owner : "", row->id);
		out_sentence(f, row, &s->out);
		fputc('\n', f);
		numbers(f, s, row);
		past(f, s, row);
		stack(f, row);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	free(owner);
	return text;
}
