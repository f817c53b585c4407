/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/capture/clock.h"
#include "lib/capture/flight.h"
#include "lib/capture/symbolize.h"
#include "lib/trace/ring.h"

struct flight {
	const char *path;
	u64 max_size, bytes;
	struct trace_ring *ring;
	struct trace_writer *w;
	struct triggers *triggers;
};

int flight_new(const char *path, u64 ring, u64 max_size, struct flight **ret_f)
{
	struct flight *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->path = path;
	f->max_size = max_size;
	err = trace_ring_new(ring, &f->ring);
	if (!err)
		err = trace_writer_sink(trace_ring_take, f->ring, &f->w);
	if (!err)
		err = triggers_new(&f->triggers);
	if (err)
		flight_free(&f);
	else
		*ret_f = f;
	return err;
}

struct trace_writer *flight_writer(const struct flight *f)
{
	return f->w;
}

struct triggers *flight_triggers(const struct flight *f)
{
	return f->triggers;
}

static int adjust_oom_score(const char *score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	int ok = fd >= 0 && write(fd, score, strlen(score)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

const char *flight_prepare(void)
{
	int locked = !mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	int spared = adjust_oom_score("-1000");

	if (locked && spared)
		return NULL;
	return !locked && !spared
		       ? "its memory may be swapped out and it may be killed itself: CAP_IPC_LOCK "
			 "and CAP_SYS_RESOURCE missing"
	       : locked ? "it may be killed itself: CAP_SYS_RESOURCE missing for oom_score_adj"
			: "its memory may be swapped out: CAP_IPC_LOCK missing";
}

static int put(struct trace_writer *w, u16 type, u64 seq, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[64];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .seq = seq,
			 .time_ns = now_ns()}};

	memcpy(rec.body, body, len);
	return trace_write(w, &rec.hdr);
}

static int put_cause(struct trace_writer *w, const struct trigger_cause *c, u64 seq)
{
	const struct mp_ev_trigger ev = {
		.kind = c->kind,
		.expr = (u32)trace_string(w, c->expr),
		.tgid = c->tgid,
		.memcg = (u32)trace_string(w, c->memcg),
		.value = c->value,
		.limit = c->limit,
	};

	return put(w, MP_EV_TRIGGER, seq, &ev, sizeof(ev));
}

int flight_write(struct flight *f, const struct trigger_cause *c, u32 reason, u64 seq,
		 u64 *ret_unnamed)
{
	const struct mp_ev_end end = {.reason = reason};
	struct trace_writer *w = NULL;
	int err = trace_writer_open(f->path, f->max_size, &w), closed;

	if (err)
		return err;
	err = trace_ring_write(f->ring, w, now_ns());
	if (!err)
		err = put_cause(w, c, seq);
	if (!err)
		err = trace_writer_flush(w);
	if (!err)
		err = trace_writer_publish(w);
	/* Files that are gone with their process cost names, no more. */
	if (!err)
		err = symbolize(f->path, w, ret_unnamed);
	if (!err)
		err = put(w, MP_EV_END, seq, &end, sizeof(end));
	closed = trace_writer_flush(w);
	f->bytes = trace_writer_bytes(w);
	if (!closed)
		closed = trace_writer_close(&w);
	else
		trace_writer_close(&w);
	return err ? err : closed;
}

u64 flight_bytes(const struct flight *f)
{
	return f->bytes;
}

void flight_free(struct flight **fp)
{
	struct flight *f = *fp;

	if (!f)
		return;
	triggers_free(&f->triggers);
	trace_writer_close(&f->w);
	trace_ring_free(&f->ring);
	free(f);
	*fp = NULL;
}
