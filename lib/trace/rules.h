/* SPDX-License-Identifier: GPL-2.0-only
 * The file of --names: lines NAME = function|mapping|file PATTERN, # begins a comment. The first
 * line that matches names a row. */
#ifndef MP_TRACE_RULES_H
#define MP_TRACE_RULES_H

#include <stddef.h>
#include "bpf/shared/event.h"

struct name_rule {
	enum mp_named_by by;
	const char *name, *pattern; /* pattern as in fnmatch(3) */
};

struct rules {
	struct name_rule *rules;
	size_t nr;
	char *text; /* of all names and patterns */
};

/* 0, or -errno with a line of reason in msg. */
int rules_read(const char *path, struct rules *ret, char *msg, size_t msg_len);
void rules_release(struct rules *r);

#endif
