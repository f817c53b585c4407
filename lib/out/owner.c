/* SPDX-License-Identifier: GPL-2.0-only
 * Whose a row is, in a line: the frames of the program, and what it called to get there. */
#define _GNU_SOURCE
#include <stdlib.h>
#include "lib/out/out.h"
#include "lib/text/text.h"

static void where(FILE *f, const struct frame *fr)
{
	if (fr->line)
		fprintf(f, ":%u", fr->line);
	else if (fr->module && !frame_is_plumbing(fr))
		fprintf(f, "@0x%llx", (unsigned long long)fr->offset);
}

void out_owner(FILE *f, const struct row *row, int lines)
{
	u32 from = row_program_frames(row), i, n = 0;
	char label[FRAME_LABEL];

	int bare = row->called || (row->name && (row->name[0] == '/' || row->name[0] == '['));

	if (row->name) {
		fputs(bare ? "" : "[", f);
		text_put(f, row->name);
		fputs(bare ? "" : "]", f);
	}
	for (i = from; !row->name && i < row->nr_frames && n < OUT_FRAMES; i++) {
		if (row->interpreted && row_passes_over(row, &row->frames[i]))
			continue;
		fputs(n++ ? " < " : "", f);
		text_put(f, frame_label(&row->frames[i], label, sizeof(label)));
		if (lines)
			where(f, &row->frames[i]);
	}
	fprintf(f, "  (%s", origin_kind_names[row->kind]);
	if (!row->name && from) {
		fputs(" by ", f);
		text_put(f, frame_label(&row->frames[from - 1], label, sizeof(label)));
	}
	fputs(")\n", f);
}

char *out_owner_text(const struct row *row)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	out_owner(f, row, 0);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	text[len - 1] = 0; /* the end of the line */
	return text;
}
