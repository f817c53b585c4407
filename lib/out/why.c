/* SPDX-License-Identifier: GPL-2.0-only
 * The chain of evidence behind the rows of one id: one for each process that has it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

static void why_row(FILE *f, const struct row *row)
{
	u32 j;
	int c;

	fprintf(f, "%s: kind %s, ", row->id, origin_kind_names[row->kind]);
	if (row->several) {
		fputs("several processes", f);
	} else {
		text_put(f, row->comm);
		fprintf(f, " (%u)", row->pid);
	}
	fprintf(f, ", %u mapping generations\n", row->generations);
	if (row->name) {
		fputs("  named ", f);
		text_put(f, row->name);
		fputc('\n', f);
	}
	if (row->evidence)
		fprintf(f, "  by shape: %s\n", row->evidence);
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
	for (c = 0; c < COST_MAX; c++) {
		const struct cost *v = &row->cost[c];

		if (v->known)
			fprintf(f, "  %-10s %lld %s: exact %lld, inferred %lld - %s\n",
				cost_columns[c].name, (long long)cost_value(v),
				cost_columns[c].unit, (long long)v->exact, (long long)v->inferred,
				cost_columns[c].doc);
	}
}

int out_why(FILE *f, const struct report *r, const char *id)
{
	const char *at = strchr(id, '@');
	size_t i, len = at ? (size_t)(at - id) : strlen(id), found = 0;
	char pid[16];

	for (i = 0; i < r->nr_rows; i++) {
		const struct row *row = &r->rows[i];

		snprintf(pid, sizeof(pid), "%u", row->pid);
		if (strncmp(row->id, id, len) || row->id[len] || (at && strcmp(at + 1, pid)))
			continue;
		if (found++)
			fputc('\n', f);
		why_row(f, row);
	}
	return found ? 0 : -ENOENT;
}
