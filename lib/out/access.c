/* SPDX-License-Identifier: GPL-2.0-only
 * What accessed bits say of the recording, and why that may not be all. */
#include <string.h>
#include <jansson.h>
#include "lib/out/out.h"

static const struct {
	u32 bit;
	const char *name, *why;
} doubts[] = {
	{MP_DOUBT_FLUSH, "flush", "a processor may have kept translations from before"},
	{MP_DOUBT_RECLAIM, "reclaim", "reclaim ran"},
	{MP_DOUBT_AGING, "aging", "the multi-generational LRU is on"},
	{MP_DOUBT_DAMON, "damon", "DAMON runs"},
	{MP_DOUBT_MIGRATION, "migration", "pages were moved"},
	{MP_DOUBT_GUEST, "guest", "a virtual machine's accesses leave no bit"},
	{MP_DOUBT_OTHER, "other", "somebody else clears accessed bits"},
	{MP_DOUBT_GAP, "gap", "what was touched between being read and cleared is not seen"},
	{MP_DOUBT_UNKNOWN, "unknown", "the recording did not end in order"},
};
#define NR_DOUBTS (sizeof(doubts) / sizeof(doubts[0]))

void out_access(FILE *f, const struct report *r, const struct out_opts *o)
{
	const struct cost *touched = &r->total[COST_TOUCHED], *cold = &r->total[COST_COLD];
	size_t i;
	int n = 0;

	if (!r->access.clears || !cold->known)
		return;
	fprintf(f, "  touched %s%s, cold %s%s: by accessed bits",
		cost_hi(touched) > cost_value(touched) ? "at least " : "",
		out_amount(o, cost_value(touched)), cost_lo(cold) < cost_hi(cold) ? "at most " : "",
		out_amount(o, cost_hi(cold)));
	for (i = 0; i < NR_DOUBTS; i++)
		if (r->access.doubts & doubts[i].bit)
			fprintf(f, "%s%s", n++ ? ", " : "; ", doubts[i].why);
	if (r->access.huge)
		fprintf(f, "; %s of touched are huge pages, known as a whole only",
			out_amount(o, (s64)r->access.huge));
	fputc('\n', f);
}

void out_samples(FILE *f, const struct report *r)
{
	u64 all = r->samples.total + r->samples.lost;

	if (!r->samples.on)
		return;
	fprintf(f, "  %llu samples of %llu in %s, %.1f%% lost, throttled %llu times%s%s\n",
		(unsigned long long)r->samples.placed, (unsigned long long)r->samples.total,
		r->samples.file ? r->samples.file : "?",
		all ? 100.0 * (double)r->samples.lost / (double)all : 0.0,
		(unsigned long long)r->samples.throttled,
		r->samples.clock ? ""
				 : "\n  of another clock: not all need be of the recorded time",
		r->samples.unranked ? "\n  the halves of the samples disagree: not ranked by them"
				    : "");
}

json_t *out_samples_json(const struct report *r)
{
	if (!r->samples.on)
		return json_null();
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:b}", "file", json_text(r->samples.file),
			 "total", (json_int_t)r->samples.total, "placed",
			 (json_int_t)r->samples.placed, "lost", (json_int_t)r->samples.lost,
			 "throttled", (json_int_t)r->samples.throttled, "clock", r->samples.clock,
			 "ranked", !r->samples.unranked);
}

json_t *out_access_json(const struct report *r)
{
	json_t *why = json_array();
	size_t i;

	if (!r->access.clears) {
		json_decref(why);
		return json_null();
	}
	for (i = 0; i < NR_DOUBTS; i++)
		if (r->access.doubts & doubts[i].bit)
			json_array_append_new(why, json_string(doubts[i].name));
	return json_pack("{s:i, s:I, s:I, s:o}", "clears", (int)r->access.clears, "clear_ns",
			 (json_int_t)r->access.took_ns, "huge", (json_int_t)r->access.huge,
			 "doubts", why);
}
