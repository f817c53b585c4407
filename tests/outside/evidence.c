/* SPDX-License-Identifier: GPL-2.0-only
 * evidence TRACE: every number of the library as JSON lines, for comparison with report's. */
#include <stdio.h>
#include <stdlib.h>
#include <memprov.h>

static void print(const char *column, int known, const struct memprov_value *v)
{
	if (known < 0)
		exit(1);
	if (!known)
		printf(", \"%s\": null", column);
	else
		printf(", \"%s\": [%lld, %lld, %lld, %lld, %lld, %lld]", column,
		       (long long)v->value, (long long)v->exact, (long long)v->inferred,
		       (long long)v->sampled, (long long)v->lo, (long long)v->hi);
}

int main(int argc, char **argv)
{
	const struct memprov_row *row = NULL;
	struct memprov_report *r = NULL;
	struct memprov *m = NULL;
	struct memprov_value v;
	struct memprov_check check;
	const char *column;
	unsigned int i, n;

	if (memprov_open(argv[argc - 1], &m) || memprov_query(m, "resident", "stack", "auto", &r)) {
		fprintf(stderr, "evidence: %s\n", memprov_error());
		return 1;
	}
	/* A report needs its trace no longer. */
	memprov_close(&m);
	while ((row = memprov_next(r, row))) {
		for (n = 0; memprov_row_frame(row, n); n++)
			;
		printf("{\"row\": \"%s\", \"kind\": \"%s\", \"pid\": %u, \"frames\": %u",
		       memprov_row_id(row), memprov_row_kind(row), memprov_row_pid(row), n);
		for (i = 0; (column = memprov_column(i)); i++)
			print(column, memprov_cost(row, column, &v), &v);
		puts("}");
	}
	printf("{\"total\": %d", memprov_complete(r));
	for (i = 0; (column = memprov_column(i)); i++)
		print(column, memprov_total(r, column, &v), &v);
	puts("}");
	for (i = 0; (column = memprov_column(i)); i++)
		if (memprov_check(r, column, &check) == 1)
			printf("{\"check\": \"%s\", \"kernel\": %llu, \"attributed\": %llu, "
			       "\"unattributed\": %llu, \"residual\": %lld, \"status\": \"%s\"}\n",
			       column, (unsigned long long)check.kernel,
			       (unsigned long long)check.attributed,
			       (unsigned long long)check.unattributed, (long long)check.residual,
			       check.status);
	memprov_report_free(&r);
	return 0;
}
