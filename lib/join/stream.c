/* SPDX-License-Identifier: GPL-2.0-only
 * The faults of a file, in order, while they are read: what they need to be judged by (losses, the
 * recorded time, mapping calls) is known from the pass before. Memory follows what is resident, not
 * how long it was recorded: the window holds the records that an earlier one may still overtake, as
 * the reader knows. */
#include "lib/join/replay.h"

/* Reads on until something can be applied. */
static int refill(struct replay *p)
{
	struct stream *s = &p->stream;
	const struct mp_hdr *first;
	u64 floor = s->floor;
	u32 nr = 0;
	int n = 1, err = store_drop(&s->window, s->next);

	s->next = 0;
	while (!err && s->floor == floor && n) {
		n = trace_reader_bulk(s->reader, &first, &nr);
		err = n < 0 ? n : n ? store_keep_all(&s->window, first, nr) : 0;
		s->floor = trace_reader_floor(s->reader);
	}
	s->done = !n;
	return err ? err : order_items(&s->window.items, s->window.nr, &s->window.cap);
}

/* A walk's records have the number of the event before them: that one comes first. */
int stream_until(struct replay *p, u64 seq)
{
	struct stream *s = &p->stream;
	const struct mp_hdr *rec;
	int err = 0;

	if (!s->reader)
		return 0;
	while (!err) {
		rec = s->next < s->window.nr ? store_rec(&s->window, s->next) : NULL;
		if (rec && (s->done || rec->seq < s->floor)) {
			if (rec->seq > seq)
				break;
			s->next++;
			note_seen(p, rec);
			err = join_fault(p, rec);
		} else if (s->done || s->floor > seq) {
			break;
		} else {
			err = refill(p);
		}
	}
	return err;
}
