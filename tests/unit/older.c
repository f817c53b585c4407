/* SPDX-License-Identifier: GPL-2.0-only
 * A trace of an earlier version, whose types have fewer fields: written here byte by byte after
 * memprov-trace(5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lib/trace/format.h"

static int failed;

static void report(const char *name, int ok)
{
	printf("%s %s\n", ok ? "ok" : "FAIL", name);
	failed |= !ok;
}

/* One type: SPACE_END with its first field alone. */
static const u8 schema[] = {
	1,
	0, /* types */
	MP_EV_SPACE_END,
	0,
	1, /* number, no tail, fields */
	8,
	0, /* size of the body */
	9,
	's',
	'p',
	'a',
	'c',
	'e',
	'_',
	'e',
	'n',
	'd', /* its name */
	8,
	TF_DELTA,
	4,
	't',
	'g',
	'i',
	'd',
	3,
	'N',
	'U',
	'M',
};

/* Two records: their types, the lengths of four columns, and these as zigzag deltas. */
static const u8 block[] = {
	MP_EV_SPACE_END,
	MP_EV_SPACE_END,
	2,
	0,
	0,
	0,
	2,
	0,
	0,
	0,
	2,
	0,
	0,
	0,
	2,
	0,
	0,
	0,
	2,
	0, /* space 1, 1 */
	10,
	2, /* seq 5, 6 */
	4,
	4, /* time 2, 4 */
	84,
	1, /* tgid 42, 41 */
};

static void what_a_file_has_not_is_zero(void)
{
	struct tf_decoder *d = tf_decoder_new();
	const struct mp_hdr *rec = NULL;
	struct tf_schema s;
	int ok = d && !tf_schema_decode(schema, sizeof(schema), &s) &&
		 !tf_decode_block(d, &s, block, sizeof(block), 2);
	u64 tgid[] = {42, 41};
	int i;

	for (i = 0; ok && i < 2; i++) {
		ok = tf_decode(d, &s, &rec) == 1 && rec->type == MP_EV_SPACE_END &&
		     rec->size == sizeof(*rec) + sizeof(struct mp_ev_space_end) &&
		     trace_body(rec, space_end)->tgid == tgid[i] &&
		     trace_body(rec, space_end)->status == 0;
	}
	report("what_a_file_has_not_is_zero", ok && tf_decode(d, &s, &rec) == -ENODATA);
	tf_decoder_free(d);
}

/* Without its first fields nobody knows how long a stack is. */
static void a_stack_without_its_length_is_refused(void)
{
	static const u8 bad[] = {
		1,   0,	  MP_EV_STACK, 2,	 1, 8,	 0,   5, 's', 't', 'a',
		'c', 'k', 8,	       TF_DELTA, 2, 'i', 'd', 2, 'I', 'D',
	};
	struct tf_schema s;

	report("a_stack_without_its_length_is_refused",
	       tf_schema_decode(bad, sizeof(bad), &s) == -EBADMSG);
}

int main(void)
{
	what_a_file_has_not_is_zero();
	a_stack_without_its_length_is_refused();
	return failed;
}
