/* SPDX-License-Identifier: GPL-2.0-only
 * Gathers records, puts them into the one causal order and has them applied, picture by picture.
 * Nothing here knows what a record means for an owner: join.c and walk.c do. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/access.h"
#include "lib/join/live.h"
#include "lib/join/memcg.h"
#include "lib/join/memsample.h"
#include "lib/join/shape.h"

static const struct loss_cause causes[MP_LOSS_MAX] = {
#define MP_LOSS(NAME, num, name, what, doc) [num] = {#name, doc, 0},
#include "bpf/shared/loss.def"
#undef MP_LOSS
};

/* ---- gathering ---- */

static int make_room(struct store *s, size_t nr, size_t len)
{
	if (s->nr + nr > s->cap) {
		size_t cap = s->cap ? s->cap : 4096;
		struct item *items;

		while (cap < s->nr + nr)
			cap *= 2;
		items = realloc(s->items, cap * sizeof(*items));
		if (!items)
			return -ENOMEM;
		s->items = items;
		s->cap = cap;
	}
	if (s->len + len > s->room) {
		size_t room = s->room ? s->room : 1u << 20;
		u8 *arena;

		while (room < s->len + len)
			room *= 2;
		arena = realloc(s->arena, room);
		if (!arena)
			return -ENOMEM;
		s->arena = arena;
		s->room = room;
	}
	return 0;
}

int store_keep_all(struct store *s, const struct mp_hdr *first, u32 nr)
{
	const u8 *rec = (const u8 *)first;
	size_t size = first->size;
	u32 i;

	if (make_room(s, nr, nr * size))
		return -ENOMEM;
	memcpy(s->arena + s->len, rec, nr * size);
	for (i = 0; i < nr; i++, rec += size, s->len += size)
		s->items[s->nr++] =
			(struct item){.seq = ((const struct mp_hdr *)rec)->seq, .at = s->len};
	return 0;
}

int store_keep(struct store *s, const struct mp_hdr *rec)
{
	return store_keep_all(s, rec, 1);
}

int store_drop(struct store *s, size_t n)
{
	struct store rest = {0};
	size_t i;
	int err = 0;

	if (n == s->nr) {
		s->nr = s->len = 0;
		return 0;
	}
	for (i = n; i < s->nr && !err; i++)
		err = store_keep(&rest, store_rec(s, i));
	store_release(s);
	*s = rest;
	return err;
}

void store_release(struct store *s)
{
	free(s->arena);
	free(s->items);
}

/* Applied behind its place: what it concerned may have been judged without it. */
static int note_late(struct replay *p, const struct mp_hdr *rec)
{
	struct mp_ev_loss late = {.count = 1, .cause = MP_LOSS_BY_CLASS, .cls = MP_CLASS_MAP};

	switch (rec->type) {
	case MP_EV_SPACE:
	case MP_EV_SPACE_END:
	case MP_EV_MAP:
	case MP_EV_UNMAP:
	case MP_EV_UNMAP_END:
	case MP_EV_REMAP:
	case MP_EV_ADVISE:
		return note_loss(p, rec, &late);
	case MP_EV_RESOURCE:
	case MP_EV_RESOURCE_END:
		p->r->losses[MP_LOSS_RESOURCE].name = causes[MP_LOSS_RESOURCE].name;
		p->r->losses[MP_LOSS_RESOURCE].doc = causes[MP_LOSS_RESOURCE].doc;
		p->r->losses[MP_LOSS_RESOURCE].count++;
		return 0;
	case MP_EV_ALLOC:
	case MP_EV_FREE:
	case MP_EV_REALLOC:
	case MP_EV_SAMPLE:
		late.cls = MP_CLASS_ALLOC;
		return note_loss(p, rec, &late);
	default:
		return 0;
	}
}

void note_seen(struct replay *p, const struct mp_hdr *rec)
{
	if (rec->time_ns && (!p->first_ns || rec->time_ns < p->first_ns))
		p->first_ns = rec->time_ns;
	if (rec->time_ns > p->last_ns)
		p->last_ns = rec->time_ns;
	p->r->mp_events++;
}

int replay_feed(struct replay *p, const struct mp_hdr *rec)
{
	int err = 0;

	if (rec->type == MP_EV_STRING)
		return 0;
	note_seen(p, rec);
	if (rec->type == MP_EV_STACK || rec->type == MP_EV_SYMBOL)
		return names_keep(p, rec);
	if (rec->seq <= p->applied)
		err = note_late(p, rec);
	return err ? err : store_keep(&p->pending, rec);
}

/* ---- facts about the recording ---- */

/* A forked space has its mappings from its parent: what was lost there is missing here. */
static int concerns(struct replay *p, const struct space_state *s, const struct space_loss *l)
{
	if (!l->space || s->id == l->space)
		return 1;
	while (l->cls != MP_CLASS_PAGE && s && s->parent && s->parent != l->space)
		s = space_get(p, s->parent);
	return l->cls != MP_CLASS_PAGE && s && s->parent == l->space;
}

static void lose(struct replay *p, struct space_state *s, const struct space_loss *l)
{
	if (concerns(p, s, l))
		s->lost[l->cls] += l->count;
	else
		return;
	if (l->cls == MP_CLASS_ALLOC && l->seq > s->alloc_hole)
		s->alloc_hole = l->seq;
}

int note_loss(struct replay *p, const struct mp_hdr *rec, const struct mp_ev_loss *loss)
{
	struct space_loss *l, now = {.space = rec->space,
				     .cls = loss->cls,
				     .count = loss->count,
				     .seq = rec->seq};
	u32 i;

	if (loss->cls >= MP_CLASS_MAX)
		return 0;
	for (i = 0; i < p->nr_spaces; i++)
		lose(p, &p->spaces[i], &now);
	for (i = 0; i < p->nr_lost; i++)
		if (p->lost[i].space == rec->space && p->lost[i].cls == loss->cls) {
			p->lost[i].count += loss->count;
			p->lost[i].seq = rec->seq > p->lost[i].seq ? rec->seq : p->lost[i].seq;
			return 0;
		}
	l = realloc(p->lost, (p->nr_lost + 1) * sizeof(*l));
	if (!l)
		return -ENOMEM;
	p->lost = l;
	p->lost[p->nr_lost++] = now;
	return 0;
}

void losses_before(struct replay *p, struct space_state *s)
{
	u32 i;

	for (i = 0; i < p->nr_lost; i++)
		lose(p, s, &p->lost[i]);
}

static int note_mark(struct replay *p, const struct mp_hdr *rec)
{
	struct report *r = p->r;
	struct mark *m = realloc(r->marks, (r->nr_marks + 1) * sizeof(*m));

	if (!m)
		return -ENOMEM;
	r->marks = m;
	m += r->nr_marks++;
	m->time_ns = rec->time_ns; /* counted from the start in the report */
	m->text = replay_text(p, trace_body(rec, mark)->text);
	return 0;
}

static void note_absent(struct replay *p, const struct mp_ev_hook *hook)
{
	const char *what = replay_text(p, hook->capability), *why = replay_text(p, hook->reason);

	if (!what)
		return;
	if (!strcmp(what, "alloc")) {
		p->r->no_alloc = hook->provider ? NULL : why ? why : "not recorded";
		/* A reason beside a provider: it does not see all. */
		p->some_allocs = hook->provider && why;
	}
	life_note(p->r, what, !hook->provider, why);
	if (hook->provider)
		return;
	if (!strcmp(what, "map")) {
		p->blind = 1;
		p->r->no_map = why ? why : "not recorded";
	} else if (!strcmp(what, "fault")) {
		p->r->no_fault = why ? why : "not recorded";
	}
}

static void note_trigger(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_trigger *ev = trace_body(rec, trigger);
	struct report *r = p->r;

	r->trigger.kind = ev->kind < MP_TRIGGER_MAX ? ev->kind : MP_TRIGGER_END;
	r->trigger.expr = replay_text(p, ev->expr);
	r->trigger.memcg = replay_text(p, ev->memcg);
	r->trigger.pid = ev->tgid;
	r->trigger.value = ev->value;
	r->trigger.limit = ev->limit;
	if (!r->trigger.time_ns)
		r->trigger.time_ns = rec->time_ns;
}

static int note(struct replay *p, const struct mp_hdr *rec)
{
	const struct mp_ev_session *ses = trace_body(rec, session);
	const struct mp_ev_hook *hook = trace_body(rec, hook);
	const struct mp_ev_loss *loss = trace_body(rec, loss);
	struct report *r = p->r;

	switch (rec->type) {
	case MP_EV_END:
		r->end = (int)trace_body(rec, end)->reason;
		break;
	case MP_EV_SESSION:
		r->start_realtime = ses->start_realtime;
		r->host = replay_text(p, ses->host);
		r->kernel = replay_text(p, ses->kernel);
		r->arch = replay_text(p, ses->arch);
		p->nr_cpus = ses->nr_cpus;
		break;
	case MP_EV_HOOK:
		note_absent(p, hook);
		if (r->nr_hooks == 32)
			break;
		r->hooks[r->nr_hooks].capability = replay_text(p, hook->capability);
		r->hooks[r->nr_hooks].provider = replay_text(p, hook->provider);
		r->hooks[r->nr_hooks].stability = replay_text(p, hook->stability);
		r->hooks[r->nr_hooks++].reason = replay_text(p, hook->reason);
		break;
	case MP_EV_LOSS:
		if (loss->cause < MP_LOSS_MAX && causes[loss->cause].name) {
			r->losses[loss->cause].name = causes[loss->cause].name;
			r->losses[loss->cause].doc = causes[loss->cause].doc;
			r->losses[loss->cause].count += loss->count;
			if (MP_LOSSES_OF_EVENTS >> loss->cause & 1)
				r->lost += loss->count;
		}
		return note_loss(p, rec, loss);
	case MP_EV_SAMPLER:
		r->sampled |= trace_body(rec, sampler)->interval != 1;
		break;
	case MP_EV_SAMPLE:
		r->sampled |= trace_body(rec, sample)->weighted > trace_body(rec, sample)->bytes;
		break;
	case MP_EV_MARK:
		return note_mark(p, rec);
	case MP_EV_CLEAR:
	case MP_EV_ACCESSED:
		return access_note(p, rec);
	case MP_EV_MEMSAMPLE:
	case MP_EV_MEMSAMPLES:
		memsample_note(p, rec);
		break;
	case MP_EV_WINDOW:
		*(trace_body(rec, window)->end ? &p->window_end : &p->window_begin) = rec->time_ns;
		break;
	case MP_EV_NAME_RULE:
		return resource_rule(p, rec);
	case MP_EV_OOM:
		r->trigger.time_ns = rec->time_ns;
		break;
	case MP_EV_TRIGGER:
		note_trigger(p, rec);
		break;
	case MP_EV_CGROUP:
	case MP_EV_CGROUP_STAT:
		return memcg_note(p, rec);
	default:
		break;
	}
	return 0;
}

/* ---- pictures ---- */

/* The highest walk number that ended among the first n: its picture gives the stocks. */
static u32 last_walk(struct replay *p, size_t n)
{
	u32 best = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		const struct mp_hdr *rec = replay_rec(p, i);
		const struct mp_ev_walk *w = trace_body(rec, walk);

		if (rec->type == MP_EV_WALK && w->end && w->id >= best) {
			best = w->id;
			p->last_walk_ns = rec->time_ns;
		}
	}
	return best;
}

static void forget_picture(struct replay *p)
{
	u32 i, c;

	sample_forget(p);
	for (i = 1; i < p->nr_origins; i++) {
		p->origins[i].moved = p->origins[i].elsewhere = p->origins[i].multi = 0;
		for (c = 0; c < COST_MAX; c++)
			if (cost_columns[c].kind == COST_STOCK)
				memset(&p->origins[i].cost[c], 0, sizeof(struct cost));
	}
	for (i = 0; i < p->nr_spaces; i++)
		p->spaces[i].pictured = 0;
	memset(p->r->check, 0, sizeof(p->r->check));
	memset(p->r->classes, 0, sizeof(p->r->classes));
	if (p->shared)
		memset(p->shared, 0, p->cap_pfns * sizeof(*p->shared));
	memset(p->raced, 0, sizeof(p->raced));
	memset(&p->split, 0, sizeof(p->split));
	p->nr_pfns = p->nr_pictured = 0;
	p->r->no_nodes = 0;
	p->r->stable = p->unstable = 0;
}

/* ---- steps ---- */

/* Of what is left for the stream, all up to this number. */
static int run(struct replay *p, size_t n, u64 seq)
{
	u32 final = last_walk(p, n), current = 0;
	size_t i;
	int err = 0;

	shape_forget(p);
	err = index_calls(p);
	if (final) {
		forget_picture(p);
		p->r->has_walk = 1;
	}
	/* Losses first: what they demote is decided while the records are applied. */
	for (i = 0; i < n && !err; i++)
		err = note(p, replay_rec(p, i));
	/* A group without processes has no picture, and is known all the same. */
	if (!p->nr_spaces && memcg_is_read(p->r->memcg))
		p->r->has_walk = 1;
	after_begin(p);
	access_begin(p, final);
	for (i = 0; i < n && !err; i++) {
		const struct mp_hdr *rec = replay_rec(p, i);
		const struct mp_ev_walk *w = trace_body(rec, walk);

		err = stream_until(p, rec->seq);
		if (err)
			break;
		if (rec->type == MP_EV_WALK && !w->end) {
			current = w->id;
			access_walk(p, rec->space, w->id);
			err = shape_walk(p, i);
			if (!err)
				err = find_races(p, i);
			if (!err && current == final)
				err = alloc_find_busy(p, i);
			if (err)
				break;
		}
		if (rec->type == MP_EV_VMA)
			err = walk_vma(p, rec);
		else if (rec->type == MP_EV_RUN)
			err = walk_run(p, rec, current == final);
		else if (rec->type == MP_EV_CHECK && current == final)
			walk_check(p, rec);
		else
			err = join_apply(p, rec, final);
		if (!err && rec->type == MP_EV_WALK && w->end)
			err = walk_finish(p, rec, w->id == final);
	}
	if (!err)
		err = stream_until(p, seq);
	alloc_release(p);
	return err ? err : p->err;
}

/* How many of the pending records come up to seq, and until_ns: a picture has the number of the
 * event before it, however much later it was taken. One that was not finished then is left out. */
static size_t step_end(const struct replay *p, u64 *seq)
{
	const struct store *s = &p->pending;
	size_t n = s->nr, i, open = 0;

	while (n && (s->items[n - 1].seq > *seq ||
		     (p->until_ns && replay_rec(p, n - 1)->time_ns > p->until_ns)))
		n--;
	for (i = 0; i < n && p->until_ns; i++)
		if (replay_rec(p, i)->type == MP_EV_WALK)
			open = trace_body(replay_rec(p, i), walk)->end ? 0 : i + 1;
	if (!open)
		return n;
	*seq = s->items[open - 1].seq;
	return open - 1;
}

int replay_step(struct replay *p, u64 seq)
{
	struct store *s = &p->pending;
	int err = order_items(&s->items, s->nr, &s->cap);
	size_t n;

	if (err)
		return err;
	p->open = seq != ~0ull && !p->cut;
	n = step_end(p, &seq);
	err = run(p, n, seq);
	if (!err)
		err = memcg_rows(p);
	p->applied = seq;
	if (!err)
		err = store_drop(&p->pending, n);
	return err || !p->open ? err : sweep(p);
}

/* ---- reports ---- */

/* By process; what it is now, behind what it was before an exec. */
static int by_pid(const void *a, const void *b)
{
	const struct space_state *s = *(struct space_state *const *)a;
	const struct space_state *t = *(struct space_state *const *)b;

	if (s->pid != t->pid)
		return s->pid < t->pid ? -1 : 1;
	if (s->pictured != t->pictured)
		return s->pictured - t->pictured;
	return s < t ? -1 : s > t;
}

/* Who is in the picture first, then who came and went. */
static int by_picture(const void *a, const void *b)
{
	const struct space_state *s = *(struct space_state *const *)a;
	const struct space_state *t = *(struct space_state *const *)b;

	if (s->pictured != t->pictured)
		return t->pictured - s->pictured;
	return s < t ? -1 : s > t;
}

static int add_targets(const struct replay *p, struct report *r)
{
	const struct space_state **all;
	u32 i, n = 0, nr = 0;

	all = calloc(p->nr_spaces ? p->nr_spaces : 1, sizeof(*all));
	r->targets = calloc(p->nr_spaces ? p->nr_spaces : 1, sizeof(*r->targets));
	if (!all || !r->targets) {
		free(all);
		return -ENOMEM;
	}
	for (i = 0; i < p->nr_spaces; i++)
		if (!p->spaces[i].gone)
			all[n++] = &p->spaces[i];
	/* Each process once, however often it became another program. */
	qsort(all, n, sizeof(*all), by_pid);
	for (i = 0; i < n; i++)
		if (i + 1 == n || all[i]->pid != all[i + 1]->pid)
			all[nr++] = all[i];
	qsort(all, nr, sizeof(*all), by_picture);
	for (i = 0; i < nr; i++) {
		r->targets[i].pid = all[i]->pid;
		r->targets[i].comm = all[i]->comm;
		r->targets[i].status = all[i]->status;
	}
	r->nr_targets = nr;
	free(all);
	return 0;
}

static int copy_marks(struct report *r, u64 begin)
{
	const struct mark *from = r->marks;
	size_t i;

	if (!r->nr_marks)
		return 0;
	r->marks = malloc(r->nr_marks * sizeof(*from));
	if (!r->marks)
		return -ENOMEM;
	for (i = 0; i < r->nr_marks; i++) {
		r->marks[i] = from[i];
		r->marks[i].time_ns = from[i].time_ns > begin ? from[i].time_ns - begin : 0;
	}
	return 0;
}

int replay_report(struct replay *p, struct report **ret_r)
{
	struct report *r = malloc(sizeof(*r));
	u64 begin = p->window_begin ? p->window_begin : p->first_ns;
	u64 end = p->window_end ? p->window_end : p->last_ns;
	int err;

	if (!r)
		return -ENOMEM;
	*r = *p->r;
	r->start_realtime += begin - p->first_ns;
	r->duration_ns = end > begin ? end - begin : 0;
	if (p->last_walk_ns && end > p->last_walk_ns)
		r->picture_age_ns = end - p->last_walk_ns;
	if (p->last_walk_ns && r->trigger.time_ns > p->last_walk_ns)
		r->trigger.picture_age_ns = r->trigger.time_ns - p->last_walk_ns;
	err = copy_marks(r, begin);
	if (err)
		r->marks = NULL;
	r->memcg = NULL;
	if (!err)
		err = memcg_copy(p->r->memcg, &r->memcg);
	if (!err)
		err = add_targets(p, r);
	r->resources = NULL;
	r->nr_resources = 0;
	if (!err)
		err = sample_settle(p);
	if (!err)
		err = names_attach(p, r);
	if (!err)
		err = resource_report(p, r);
	if (!err)
		walk_judge(p, r);
	if (err)
		join_free(&r);
	else
		*ret_r = r;
	return err;
}

int replay_new(enum owner_mode owner, const char *(*text)(const void *ctx, u32 id), const void *ctx,
	       struct replay **ret_p)
{
	struct replay *p = calloc(1, sizeof(*p));
	int err = -ENOMEM;

	if (!p)
		return err;
	p->owner = owner;
	p->text = text;
	p->text_ctx = ctx;
	p->r = calloc(1, sizeof(*p->r));
	if (p->r)
		err = ledger_new(&p->ledger);
	if (err) {
		replay_free(&p);
		return err;
	}
	p->picture = 1;
	p->r->end = -1;
	p->r->no_alloc = "not recorded";
	life_begin(p->r);
	*ret_p = p;
	return 0;
}

void replay_free(struct replay **pp)
{
	struct replay *p = *pp;
	u32 i;

	if (!p)
		return;
	for (i = 1; i < p->nr_origins; i++)
		sample_release(&p->origins[i]);
	ledger_free(&p->ledger);
	store_release(&p->pending);
	store_release(&p->named);
	free(p->stacks);
	store_release(&p->stream.window);
	names_release(p);
	join_free(&p->r);
	free(p->origins);
	free(p->hash);
	for (i = 0; i < p->nr_spaces; i++)
		access_free(p->spaces[i].access);
	free(p->spaces);
	free(p->space_index);
	free(p->vmas);
	free(p->lost);
	free(p->races);
	free(p->chunks);
	free(p->births);
	free(p->busy);
	free(p->held);
	free(p->leaving);
	free(p->huge);
	free(p->calls);
	free(p->doubts);
	free(p->resources);
	free(p->rules);
	free(p->shared);
	shape_free(p);
	free(p);
	*pp = NULL;
}

void join_free(struct report **r)
{
	size_t i;

	if (!r || !*r)
		return;
	for (i = 0; i < (*r)->nr_rows; i++)
		free((*r)->rows[i].frames);
	free((*r)->rows);
	free((*r)->names);
	for (i = 0; i < (*r)->nr_texts; i++)
		free((*r)->texts[i]);
	free((*r)->texts);
	for (i = 0; i < (*r)->nr_parts; i++)
		join_free(&(*r)->parts[i]);
	free((*r)->parts);
	free((*r)->targets);
	free((*r)->marks);
	free((*r)->resources);
	memcg_free(&(*r)->memcg);
	trace_reader_close(&(*r)->reader);
	free(*r);
	*r = NULL;
}
