/* SPDX-License-Identifier: GPL-2.0-only
 * A trace file as a whole, as of some time, and along its time. The times of a recording are told
 * by its records: a first pass finds the number of the last one up to each. */
#include <errno.h>
#include <stdlib.h>
#include "lib/join/live.h"
#include "lib/join/replay.h"

static const char *text_of(const void *reader, u32 id)
{
	return trace_reader_string(reader, id);
}

/* All records but faults, which follow as they are needed. */
static int gather(struct trace_reader *reader, enum owner_mode owner, struct replay **ret_p)
{
	struct replay *p = NULL;
	const struct mp_hdr *rec;
	int n = 0, err = replay_new(owner, text_of, reader, &p);

	trace_reader_leave_out(reader, MP_EV_FAULT);
	while (!err && (n = trace_reader_next(reader, &rec)) > 0)
		err = replay_feed(p, rec);
	if (!err)
		err = n < 0 ? n : trace_reader_again(reader);
	if (err) {
		replay_free(&p);
		return err;
	}
	p->stream.reader = reader;
	p->stream.floor = trace_reader_floor(reader);
	*ret_p = p;
	return 0;
}

int join_trace(struct trace_reader *reader, enum owner_mode owner, struct report **ret_r)
{
	struct replay *p = NULL;
	int err = gather(reader, owner, &p);

	if (!err)
		err = replay_step(p, ~0ull);
	if (!err)
		err = replay_report(p, ret_r);
	replay_free(&p);
	if (err) {
		trace_reader_close(&reader);
		return err;
	}
	(*ret_r)->truncated = trace_reader_truncated(reader);
	(*ret_r)->reader = reader;
	return 0;
}

int join_file(const char *path, enum owner_mode owner, struct report **ret_r)
{
	struct trace_reader *reader = NULL;
	int err = trace_reader_open(path, &reader);

	return err ? err : join_trace(reader, owner, ret_r);
}

/* ---- times ---- */

struct cut {
	u64 time_ns, seq; /* seq: of the last record up to then */
};

struct span {
	u64 begin, end; /* the recorded time */
};

static int read_span(const char *path, struct span *ret)
{
	struct trace_reader *reader = NULL;
	u64 first = 0, last = 0;
	const struct mp_hdr *rec;
	int n, err = trace_reader_open(path, &reader);

	*ret = (struct span){0};
	if (err)
		return err;
	while ((n = trace_reader_next(reader, &rec)) > 0) {
		if (!rec->time_ns)
			continue;
		if (!first || rec->time_ns < first)
			first = rec->time_ns;
		if (rec->time_ns > last)
			last = rec->time_ns;
		if (rec->type == MP_EV_WINDOW)
			*(trace_body(rec, window)->end ? &ret->end : &ret->begin) = rec->time_ns;
	}
	trace_reader_close(&reader);
	ret->begin = ret->begin ? ret->begin : first;
	ret->end = ret->end ? ret->end : last;
	return n;
}

/* The cuts are in the order of time. */
static int find_cuts(const char *path, struct cut *cuts, size_t nr)
{
	struct trace_reader *reader = NULL;
	const struct mp_hdr *rec;
	size_t i;
	int n, err = trace_reader_open(path, &reader);

	if (err)
		return err;
	while ((n = trace_reader_next(reader, &rec)) > 0)
		for (i = nr; rec->time_ns && i-- && rec->time_ns <= cuts[i].time_ns;)
			if (rec->seq > cuts[i].seq)
				cuts[i].seq = rec->seq;
	trace_reader_close(&reader);
	return n;
}

int join_file_at(const char *path, enum owner_mode owner, u64 at_ns, struct report **ret_r,
		 u64 *ret_duration)
{
	struct trace_reader *reader = NULL;
	struct replay *p = NULL;
	struct span span;
	struct cut cut = {0};
	int err = read_span(path, &span);

	*ret_duration = span.end - span.begin;
	if (!err && at_ns > *ret_duration)
		return -ERANGE;
	cut.time_ns = span.begin + at_ns;
	if (!err)
		err = find_cuts(path, &cut, 1);
	if (!err)
		err = trace_reader_open(path, &reader);
	if (!err)
		err = gather(reader, owner, &p);
	if (!err) {
		p->until_ns = cut.time_ns;
		p->cut = 1;
		err = replay_step(p, cut.seq);
	}
	if (!err)
		err = replay_report(p, ret_r);
	if (!err) {
		(*ret_r)->reader = reader;
		(*ret_r)->at_ns = at_ns ? at_ns : 1;
		(*ret_r)->duration_ns = at_ns;
		(*ret_r)->end = MP_END_DURATION;
		(*ret_r)->picture_age_ns = p->last_walk_ns && p->last_walk_ns < cut.time_ns
						   ? cut.time_ns - p->last_walk_ns
						   : 0;
	} else {
		trace_reader_close(&reader);
	}
	replay_free(&p);
	return err;
}

static int moment_of(struct replay *p, u64 begin, const struct cut *cut, struct moment *ret)
{
	struct report *r = NULL;
	int err, c;

	p->until_ns = cut->seq == ~0ull ? 0 : cut->time_ns;
	err = replay_step(p, cut->seq);
	if (!err)
		err = replay_report(p, &r);
	if (err)
		return err;
	ret->time_ns = cut->time_ns - begin;
	ret->picture_ns = p->last_walk_ns > begin ? p->last_walk_ns - begin
			  : p->last_walk_ns	  ? 1
						  : 0;
	for (c = 0; c < COST_MAX; c++)
		ret->total[c] = r->total[c];
	join_free(&r);
	return 0;
}

int join_timeline(const char *path, enum owner_mode owner, size_t n, struct moment **ret_all,
		  size_t *ret_n)
{
	struct cut *cuts = calloc(n, sizeof(*cuts));
	struct moment *all = calloc(n, sizeof(*all));
	struct trace_reader *reader = NULL;
	struct replay *p = NULL;
	struct span span;
	size_t i;
	int err = cuts && all ? read_span(path, &span) : -ENOMEM;

	for (i = 0; i < n && !err; i++)
		cuts[i].time_ns = span.begin + (span.end - span.begin) / n * (i + 1);
	if (!err)
		err = find_cuts(path, cuts, n);
	/* Behind the recorded time is the last picture. */
	if (!err)
		cuts[n - 1].seq = ~0ull;
	if (!err)
		err = trace_reader_open(path, &reader);
	if (!err)
		err = gather(reader, owner, &p);
	for (i = 0; i < n && !err; i++)
		err = moment_of(p, span.begin, &cuts[i], &all[i]);
	replay_free(&p);
	trace_reader_close(&reader);
	free(cuts);
	if (err) {
		free(all);
		return err;
	}
	*ret_all = all;
	*ret_n = n;
	return 0;
}
