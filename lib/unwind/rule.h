/* SPDX-License-Identifier: GPL-2.0-only
 * What call frame information says at one address, and the rule that BPF can follow for it.
 * Internal to lib/unwind. */
#ifndef MP_UNWIND_RULE_H
#define MP_UNWIND_RULE_H

#include "bpf/shared/unwind.h"
#include "lib/unwind/reader.h"

enum saved { SAVED_SAME, SAVED_CFA, SAVED_EXPR, SAVED_GONE, SAVED_OTHER };

struct saved_at {
	enum saved how;
	s64 off;
	struct reader expr;
};

struct cfi_state {
	struct reader expr; /* of the CFA; p NULL: reg + off */
	u64 reg;
	s64 off;
	struct saved_at bp, bx, ra;
};

struct mp_rule cfi_rule(const struct cfi_state *s, int is_signal);

#endif
