/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include "lib/out/features.h"

int features_json(FILE *f, const struct feature *rows, size_t n)
{
	json_t *list = json_array(), *providers = NULL, *root;
	size_t i;
	int err;

	for (i = 0; i < n; i++, rows++) {
		if (!i || strcmp(rows->capability, rows[-1].capability) != 0) {
			providers = json_array();
			json_array_append_new(list,
					      json_pack("{s:s, s:o}", "name", rows->capability,
							"providers", providers));
		}
		json_array_append_new(providers,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name",
						rows->provider, "stability", rows->stability,
						"status", rows->status, "grade", rows->grade,
						"reason", rows->reason, "remedy", rows->remedy));
	}
	root = json_pack("{s:s, s:o}", "schema", "memprov-features/1", "capabilities", list);
	err = !root || json_dumpf(root, f, JSON_INDENT(1)) ? -ENOMEM : 0;
	if (!err)
		fputc('\n', f);
	json_decref(root);
	return err;
}

void features_table(FILE *f, const struct feature *rows, size_t n)
{
	fprintf(f, "%-14s %-33s %-14s %-8s %-9s %s\n", "CAPABILITY", "PROVIDER", "STABILITY",
		"STATUS", "GRADE", "REASON");
	for (; n--; rows++)
		fprintf(f, "%-14s %-33s %-14s %-8s %-9s %s%s%s\n", rows->capability, rows->provider,
			rows->stability, rows->status, rows->grade, rows->reason,
			rows->remedy[0] ? "; " : "", rows->remedy);
}
