/* SPDX-License-Identifier: GPL-2.0-only
 * folded TRACE [COLUMN]: folded stacks, from the installed library alone. */
#include <stdio.h>
#include <string.h>
#include <memprov.h>

static void word(const char *s, const char *none)
{
	for (s = s ? s : none; *s; s++)
		putchar(*s == ';' || *s == '\n' ? ':' : *s);
}

/* Its function, else [its file]. */
static void frame(const struct memprov_frame *f)
{
	const char *function = memprov_frame_function(f), *module = memprov_frame_module(f);
	const char *slash = module ? strrchr(module, '/') : NULL;

	if (function || !module || module[0] == '[')
		return word(function ? function : module, "[unknown]");
	putchar('['), word(slash ? slash + 1 : module, ""), putchar(']');
}

int main(int argc, char **argv)
{
	const char *column = argc > 2 ? argv[2] : "resident";
	const struct memprov_row *row = NULL;
	struct memprov_report *r = NULL;
	struct memprov *m = NULL;
	struct memprov_value v;
	unsigned int i;

	if (memprov_open(argc > 1 ? argv[1] : "memprov.data", &m) ||
	    memprov_query(m, column, NULL, NULL, &r))
		return fprintf(stderr, "folded: %s\n", memprov_error()), 1;
	while ((row = memprov_next(r, row))) {
		if (memprov_cost(row, column, &v) != 1 || v.value <= 0)
			continue;
		word(memprov_row_comm(row), "?");
		for (i = 0; !memprov_row_name(row) && memprov_row_frame(row, i); i++)
			;
		if (!i)
			printf(";[%s];", memprov_row_kind(row)), word(memprov_row_name(row), "?");
		while (i--)
			putchar(';'), frame(memprov_row_frame(row, i));
		printf(" %lld\n", (long long)v.value);
	}
	memprov_report_free(&r);
	memprov_close(&m);
	return 0;
}
