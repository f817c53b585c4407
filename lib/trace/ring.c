/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "lib/trace/ring.h"

#define OPEN_BYTES (256u << 10)
#define LEVEL	   1
#define SPAN_NS	   60000000000ull

/* In the order they are written: a name before its use. */
enum { PILE_FACTS, PILE_PICTURES, PILE_CALLS, PILE_PAGES, PILES };

/* Records that were closed and compressed together. */
struct chunk {
	struct chunk *next;
	u32 len, raw_len;
	u32 round; /* of pictures */
	u64 time_ns; /* of its last record */
	u8 bytes[];
};

struct pile {
	struct chunk *first, *last;
	u8 *open;
	u32 open_len;
	u64 time_ns;
};

struct dropped {
	u32 space, cls;
	u64 count;
	u64 time_ns; /* of the latest */
};

struct trace_ring {
	u64 size, bytes, seq;
	struct pile pile[PILES];
	u32 round; /* of the picture that is being taken */
	int pruned; /* the first picture is gone */
	u64 began_ns, ended_ns; /* WINDOW, 0 not seen */
	struct dropped *dropped;
	u32 nr_dropped;
	ZSTD_CCtx *cctx;
	u8 *raw, *out;
};

int trace_ring_new(u64 size, struct trace_ring **ret_r)
{
	struct trace_ring *r = calloc(1, sizeof(*r));
	int i, short_of = 0;

	if (!r)
		return -ENOMEM;
	r->size = size;
	r->cctx = ZSTD_createCCtx();
	r->raw = malloc(OPEN_BYTES);
	r->out = malloc(ZSTD_compressBound(OPEN_BYTES));
	for (i = 0; i < PILES; i++) {
		r->pile[i].open = malloc(OPEN_BYTES);
		short_of |= !r->pile[i].open;
	}
	if (short_of || !r->cctx || !r->raw || !r->out) {
		trace_ring_free(&r);
		return -ENOMEM;
	}
	*ret_r = r;
	return 0;
}

static int pile_of(u16 type)
{
	switch (type) {
	case MP_EV_WALK:
	case MP_EV_VMA:
	case MP_EV_RUN:
	case MP_EV_CHECK:
	case MP_EV_CHUNK:
	case MP_EV_CLEAR:
		return PILE_PICTURES;
	case MP_EV_MAP:
	case MP_EV_UNMAP:
	case MP_EV_UNMAP_END:
	case MP_EV_REMAP:
	case MP_EV_ADVISE:
	case MP_EV_ALLOC:
	case MP_EV_FREE:
	case MP_EV_REALLOC:
		return PILE_CALLS;
	case MP_EV_FAULT:
	case MP_EV_EDGE:
	case MP_EV_RECLAIM:
		return PILE_PAGES;
	default:
		return PILE_FACTS;
	}
}

static u32 class_of(u16 type)
{
	switch (type) {
	case MP_EV_ALLOC:
	case MP_EV_FREE:
	case MP_EV_REALLOC:
		return MP_CLASS_ALLOC;
	default:
		return pile_of(type) == PILE_PAGES ? MP_CLASS_PAGE : MP_CLASS_MAP;
	}
}

/* ---- letting go ---- */

static int count_dropped(struct trace_ring *r, u32 space, u32 cls, u64 time_ns)
{
	struct dropped *d;
	u32 i;

	for (i = r->nr_dropped; i-- > 0;)
		if (r->dropped[i].space == space && r->dropped[i].cls == cls) {
			r->dropped[i].count++;
			r->dropped[i].time_ns = time_ns;
			return 0;
		}
	d = realloc(r->dropped, (r->nr_dropped + 1) * sizeof(*d));
	if (!d)
		return -ENOMEM;
	r->dropped = d;
	d[r->nr_dropped++] =
		(struct dropped){.space = space, .cls = cls, .count = 1, .time_ns = time_ns};
	return 0;
}

static int unpack(struct trace_ring *r, const struct chunk *c)
{
	size_t n = ZSTD_decompress(r->raw, OPEN_BYTES, c->bytes, c->len);

	return ZSTD_isError(n) || n != c->raw_len ? -EIO : 0;
}

static void take_first(struct trace_ring *r, struct pile *p)
{
	struct chunk *c = p->first;

	p->first = c->next;
	if (!p->first)
		p->last = NULL;
	r->bytes -= sizeof(*c) + c->len;
	free(c);
}

static int drop_first(struct trace_ring *r, struct pile *p)
{
	const struct mp_hdr *rec;
	u32 at, len = p->first->raw_len;
	int err = unpack(r, p->first);

	for (at = 0; at < len && !err; at += rec->size) {
		rec = (const struct mp_hdr *)(r->raw + at);
		err = count_dropped(r, rec->space, class_of(rec->type), rec->time_ns);
	}
	take_first(r, p);
	return err;
}

/* The oldest picture, when the next one is old enough to begin with. */
static void prune(struct trace_ring *r, u64 now)
{
	struct pile *p = &r->pile[PILE_PICTURES];
	struct chunk *c;
	u32 first;

	for (;;) {
		first = p->first ? p->first->round : 0;
		for (c = p->first; c && c->round == first; c = c->next)
			;
		if (!c || c->round == r->round || c->time_ns + SPAN_NS > now)
			return;
		while (p->first->round == first)
			take_first(r, p);
		r->pruned = 1;
	}
}

static int make_room(struct trace_ring *r)
{
	int err = 0;

	while (!err && r->bytes > r->size) {
		if (r->pile[PILE_PAGES].first)
			err = drop_first(r, &r->pile[PILE_PAGES]);
		else if (r->pile[PILE_CALLS].first)
			err = drop_first(r, &r->pile[PILE_CALLS]);
		else
			break;
	}
	return err;
}

/* ---- taking ---- */

static int close_open(struct trace_ring *r, struct pile *p, u32 round)
{
	struct chunk *c;
	size_t n;

	if (!p->open_len)
		return 0;
	n = ZSTD_compressCCtx(r->cctx, r->out, ZSTD_compressBound(OPEN_BYTES), p->open, p->open_len,
			      LEVEL);
	if (ZSTD_isError(n))
		return -EIO;
	c = malloc(sizeof(*c) + n);
	if (!c)
		return -ENOMEM;
	*c = (struct chunk){
		.len = (u32)n, .raw_len = p->open_len, .round = round, .time_ns = p->time_ns};
	memcpy(c->bytes, r->out, n);
	*(p->last ? &p->last->next : &p->first) = c;
	p->last = c;
	p->open_len = 0;
	r->bytes += sizeof(*c) + n;
	return make_room(r);
}

/* The pictures of a round have one number. */
static int turn_round(struct trace_ring *r, const struct mp_hdr *rec)
{
	u32 round = trace_body(rec, walk)->id;
	int err;

	if (rec->type != MP_EV_WALK || round == r->round)
		return 0;
	err = close_open(r, &r->pile[PILE_PICTURES], r->round);
	r->round = round;
	if (!err)
		prune(r, rec->time_ns);
	return err;
}

int trace_ring_take(void *ctx, const struct mp_hdr *rec)
{
	struct trace_ring *r = ctx;
	struct pile *p = &r->pile[pile_of(rec->type)];
	int err = turn_round(r, rec);

	if (rec->seq > r->seq)
		r->seq = rec->seq;
	if (rec->type == MP_EV_WINDOW) {
		*(trace_body(rec, window)->end ? &r->ended_ns : &r->began_ns) = rec->time_ns;
		return 0;
	}
	if (!err && p->open_len + rec->size > OPEN_BYTES)
		err = close_open(r, p, r->round);
	if (err)
		return err;
	memcpy(p->open + p->open_len, rec, rec->size);
	p->open_len += rec->size;
	p->time_ns = rec->time_ns;
	return 0;
}

/* ---- writing ---- */

static int write_all(struct trace_writer *w, const u8 *raw, u32 len)
{
	const struct mp_hdr *rec;
	u32 at;
	int err = 0;

	for (at = 0; at < len && !err; at += rec->size) {
		rec = (const struct mp_hdr *)(raw + at);
		err = trace_write(w, rec);
	}
	return err;
}

static int write_pile(struct trace_ring *r, const struct pile *p, struct trace_writer *w)
{
	const struct chunk *c;
	int err = 0;

	for (c = p->first; c && !err; c = c->next) {
		err = unpack(r, c);
		if (!err)
			err = write_all(w, r->raw, c->raw_len);
	}
	return err ? err : write_all(w, p->open, p->open_len);
}

static int put(struct trace_ring *r, struct trace_writer *w, u16 type, u32 space, u64 time_ns,
	       const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[16];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .space = space,
			 .seq = r->seq,
			 .time_ns = time_ns}};

	memcpy(rec.body, body, len);
	return trace_write(w, &rec.hdr);
}

static int put_window(struct trace_ring *r, struct trace_writer *w, u32 end, u64 time_ns)
{
	const struct mp_ev_window ev = {.end = end};

	return time_ns ? put(r, w, MP_EV_WINDOW, 0, time_ns, &ev, sizeof(ev)) : 0;
}

static u64 begins(const struct trace_ring *r)
{
	const struct chunk *first = r->pile[PILE_PICTURES].first;

	return r->pruned && first ? first->time_ns : r->began_ns;
}

/* What was let go is missing as if it had never arrived, but for page events from before the time
 * that is said to be recorded: they are in no flow of it. */
static int put_losses(struct trace_ring *r, struct trace_writer *w, u64 now)
{
	u64 sum = 0;
	u32 i;
	int err = 0;

	for (i = 0; i < r->nr_dropped && !err; i++) {
		const struct mp_ev_loss ev = {.count = r->dropped[i].count,
					      .cause = MP_LOSS_BY_CLASS,
					      .cls = r->dropped[i].cls};

		if (ev.cls == MP_CLASS_PAGE && r->dropped[i].time_ns < begins(r))
			continue;
		sum += ev.count;
		err = put(r, w, MP_EV_LOSS, r->dropped[i].space, now, &ev, sizeof(ev));
	}
	if (!err && sum) {
		const struct mp_ev_loss ev = {
			.count = sum, .cause = MP_LOSS_FLIGHT, .cls = MP_CLASS_MAX};

		err = put(r, w, MP_EV_LOSS, 0, now, &ev, sizeof(ev));
	}
	return err;
}

int trace_ring_write(struct trace_ring *r, struct trace_writer *w, u64 now_ns)
{
	int i, err = 0;

	for (i = 0; i < PILES && !err; i++)
		err = write_pile(r, &r->pile[i], w);
	if (!err)
		err = put_losses(r, w, now_ns);
	if (!err)
		err = put_window(r, w, 0, begins(r));
	return err ? err : put_window(r, w, 1, r->ended_ns ? r->ended_ns : now_ns);
}

u64 trace_ring_bytes(const struct trace_ring *r)
{
	return r->bytes;
}

void trace_ring_free(struct trace_ring **rp)
{
	struct trace_ring *r = *rp;
	int i;

	if (!r)
		return;
	for (i = 0; i < PILES; i++) {
		while (r->pile[i].first)
			take_first(r, &r->pile[i]);
		free(r->pile[i].open);
	}
	free(r->dropped);
	ZSTD_freeCCtx(r->cctx);
	free(r->raw);
	free(r->out);
	free(r);
	*rp = NULL;
}
