/* SPDX-License-Identifier: GPL-2.0-only
 * Who is charged for the pages of a picture, and how well that is known. A page that several own is
 * split by its bytes: each share is rounded so that all shares of a page are the page. */
#include "lib/join/access.h"
#include "lib/join/memcg.h"
#include "lib/join/replay.h"

#define PSS_SHIFT 12

/* Bytes of one run that have one owner and are one thing. */
struct lot {
	const struct mp_ev_run *run;
	u32 space, mapping, owner;
	u32 unnamed; /* the owner without the name of these bytes */
	enum mem_class cls;
	enum cost_part part; /* of whose and what they are */
	u64 birth; /* of the allocation, 0 none, ~0 freed */
	int race, first, final;
	struct sampled_piece sample;
};

/* ---- grades ---- */

int lost_calls(struct replay *p, u32 space)
{
	const struct space_state *s = space_get(p, space);

	return s && (s->lost[MP_CLASS_MAP] || s->lost[MP_CLASS_SPACE]);
}

/* The weaker of the owner's grade and, for a picture, exact. A lost map event may have concerned
 * any mapping but those the picture itself names. Fault stacks are inferences; so are shapes, but
 * only who it is, not how much. */
static enum cost_part owner_part(struct replay *p, const struct origin *o)
{
	if (o->kind == ORIGIN_FAULT || p->blind ||
	    (o->kind != ORIGIN_FILE && o->kind != ORIGIN_SHMEM && lost_calls(p, o->space)))
		return PART_INFERRED;
	if (o->class_name && (o->kind == ORIGIN_PREEXISTING || o->kind == ORIGIN_SPECIAL))
		return PART_COUNTED;
	return PART_EXACT;
}

/* The same of pages: asked who made them resident, a mapping stands in for whoever touched the page
 * unseen. */
enum cost_part page_part(struct replay *p, const struct origin *o)
{
	if (p->owner == OWNER_FAULT && (o->kind == ORIGIN_MMAP || o->kind == ORIGIN_BRK))
		return PART_INFERRED;
	return owner_part(p, o);
}

static enum cost_part weaker(enum cost_part a, enum cost_part b)
{
	return a < b ? a : b;
}

/* How well is it known that these bytes are of this allocation, live or freed? What was lost before
 * its birth does not concern it. */
static enum cost_part piece_part(struct replay *p, u32 space, const struct ledger_piece *piece)
{
	const struct space_state *s = space_get(p, space);
	enum cost_part part = owner_part(p, &p->origins[piece->origin]);

	/* Freed, they may have been given to an allocation that was not recorded. */
	if (piece->birth <= (s ? s->alloc_hole : 0) ||
	    (piece->state == LEDGER_FREED && p->some_allocs))
		return PART_INFERRED;
	return part;
}

/* And that they are of none? heap: an allocator mapped them; one that was at it when the recording
 * began may have returned later. */
static enum cost_part rest_part(struct replay *p, u32 space, u32 mapping, int heap)
{
	const struct origin *o = &p->origins[mapping];
	const struct space_state *s = space_get(p, space);

	/* Of sampled ones nothing is charged that would have to be another's. */
	if (!p->r->no_alloc && !p->r->sampled && may_hold_allocs(o->kind) &&
	    (p->some_allocs || !s || s->alloc_hole || (heap && s->attached)))
		return PART_INFERRED;
	return owner_part(p, o);
}

/* ---- amounts ---- */

void part_add(struct cost *c, enum cost_part part, s64 amount)
{
	cost_add(c, part == PART_EXACT ? amount : 0, part == PART_EXACT ? 0 : amount);
	if (part == PART_COUNTED)
		c->counted += amount;
}

static void charge_as(struct replay *p, u32 origin, enum cost_id id, s64 amount,
		      enum cost_part part, int race)
{
	part_add(&p->origins[origin].cost[id], race ? PART_INFERRED : part, amount);
	if (race)
		p->raced[id] += amount;
}

/* What a lot costs its owner; a sampled allocation in it is noted beside that. */
static void charge_owner(struct replay *p, const struct lot *lot, enum cost_id id, s64 amount)
{
	charge_as(p, lot->owner, id, amount, lot->part, lot->race);
	if (lot->sample.origin)
		sample_charge(p, &lot->sample, id, amount);
}

void charge(struct replay *p, u32 origin, enum cost_id id, s64 amount, int race)
{
	const struct origin *o = &p->origins[origin];

	charge_as(p, origin, id, amount, id == COST_RESERVED ? owner_part(p, o) : page_part(p, o),
		  race);
}

static enum mem_class class_of(enum origin_kind mapping)
{
	switch (mapping) {
	case ORIGIN_MMAP:
	case ORIGIN_BRK:
		return CLASS_LIVE;
	case ORIGIN_FILE:
		return CLASS_FILE;
	case ORIGIN_SHMEM:
		return CLASS_SHMEM;
	case ORIGIN_STACK:
		return CLASS_STACK;
	case ORIGIN_SPECIAL:
		return CLASS_SPECIAL;
	case ORIGIN_PREEXISTING:
		return CLASS_PREEXISTING;
	default:
		return CLASS_UNATTRIBUTED;
	}
}

/* Did the pictures ask which pages are charged to the recorded cgroup? */
int knows_charges(const struct replay *p)
{
	return p->r->memcg && p->r->memcg->flags & MP_CGROUP_ASKED;
}

/* The share of bytes [from, to) of pages that count part each. */
static s64 share(u64 from, u64 to, u64 part)
{
	u64 a = from / MP_PAGE_SIZE * part + from % MP_PAGE_SIZE * part / MP_PAGE_SIZE;
	u64 b = to / MP_PAGE_SIZE * part + to % MP_PAGE_SIZE * part / MP_PAGE_SIZE;

	return (s64)(b - a);
}

/* A page of several owners counts for all of them, or for none. */
static void charge_unique_split(struct replay *p, const struct lot *lot, u64 pfn_id, u64 page,
				s64 bytes)
{
	struct origin *o;

	if (p->split.page != page || p->split.space != lot->space) {
		p->split.page = page;
		p->split.space = lot->space;
		p->split.unique = unique_page(p, pfn_id, lot->mapping, PART_INFERRED);
	}
	o = &p->origins[lot->owner];
	if (p->split.unique) {
		charge_as(p, lot->owner, COST_UNIQUE, bytes, PART_INFERRED, lot->race);
		return;
	}
	o->elsewhere += (u64)bytes;
	o->cost[COST_UNIQUE].open = 1;
}

/* Of pages that others map, too. */
static void charge_unique(struct replay *p, const struct lot *lot, u64 from, u64 to)
{
	const struct mp_ev_run *run = lot->run;
	enum cost_part part = lot->race ? PART_INFERRED : lot->part;
	s64 unique = 0;
	u64 at, end, pfn_id;

	for (at = from; at < to && run->pfn_id; at = end) {
		end = at / MP_PAGE_SIZE * MP_PAGE_SIZE + MP_PAGE_SIZE;
		end = end < to ? end : to;
		pfn_id = run->pfn_id + (at - run->start) / MP_PAGE_SIZE;
		if (end - at == MP_PAGE_SIZE)
			unique += unique_page(p, pfn_id, lot->owner, part);
		else
			charge_unique_split(p, lot, pfn_id, at / MP_PAGE_SIZE * MP_PAGE_SIZE,
					    (s64)(end - at));
	}
	charge_owner(p, lot, COST_UNIQUE, unique);
}

static void charge_class(struct replay *p, const struct lot *lot, s64 bytes)
{
	static const int column_of[CLASS_MAX] = {
		[CLASS_LIVE] = COST_LIVE + 1,
		[CLASS_FREED] = COST_FREED + 1,
		[CLASS_SLACK] = COST_SLACK + 1,
	};
	int column = column_of[lot->cls] - 1;

	if (column >= 0)
		charge_owner(p, lot, (enum cost_id)column, bytes);
	if (lot->cls == CLASS_SLACK && lot->run->flags & MP_PAGE_THP)
		charge_owner(p, lot, COST_PADDING, bytes);
}

static enum cost_part lot_part(struct replay *p, const struct lot *lot)
{
	const struct origin *owner = &p->origins[lot->owner];

	return weaker(lot->part,
		      lot->unnamed == lot->mapping ? page_part(p, owner) : owner_part(p, owner));
}

static void charge_bytes(struct replay *p, const struct lot *lot, u64 from, u64 to)
{
	const struct mp_ev_run *run = lot->run;
	u32 n = run->mapcount ? run->mapcount : 1;
	enum cost_part part = lot_part(p, lot);
	struct lot l = *lot;
	s64 bytes = (s64)(to - from);
	int race = lot->race;

	l.part = part;
	if (run->flags & MP_PAGE_SWAPPED)
		charge_owner(p, &l, COST_SWAPPED, bytes);
	if (run->flags & MP_PAGE_HUGETLB)
		charge_owner(p, &l, COST_HUGETLB, bytes);
	if (!(run->flags & MP_PAGE_RESIDENT))
		return;
	charge_owner(p, &l, COST_RESIDENT, bytes);
	if (run->node < MP_NODE_COLUMNS)
		charge_owner(p, &l, COST_NODE0 + run->node, bytes);
	else
		p->r->no_nodes = 1;
	if (run->flags & MP_PAGE_CHARGED && knows_charges(p))
		charge_owner(p, &l, COST_CHARGED, bytes);
	charge_owner(p, &l, COST_PSS, share(from, to, (MP_PAGE_SIZE << PSS_SHIFT) / n));
	if (!run->mapcount)
		p->r->no_frames = 1;
	if (run->flags & MP_PAGE_THP)
		charge_owner(p, &l, COST_THP, bytes);
	if (n > 1) {
		charge_owner(p, &l, COST_SHARED, bytes);
		charge_unique(p, &l, from, to);
	} else {
		charge_owner(p, &l, COST_PRIVATE, bytes);
		charge_owner(p, &l, COST_UNIQUE, bytes);
	}
	charge_class(p, &l, bytes);
	part_add(&p->r->classes[lot->cls], race ? PART_INFERRED : lot->part, bytes);
}

static void charge_access(struct replay *p, const struct lot *lot, u64 from, u64 to)
{
	const struct access_lot l = {
		.space = lot->space,
		.owner = lot->owner,
		.part = lot_part(p, lot),
		.birth = lot->birth,
		.final = lot->final,
	};

	access_charge(p, &l, from, to);
}

/* The first picture of a space is where growth counts from; it may be the last one too. */
static void charge_named(struct replay *p, const struct lot *lot, u64 from, u64 to)
{
	int resident = lot->run->flags & MP_PAGE_RESIDENT;

	if (lot->first && resident)
		p->origins[lot->owner].resident_start += to - from;
	if (lot->final && lot->unnamed != lot->mapping && resident)
		p->origins[lot->mapping].moved += to - from;
	if (lot->final)
		charge_bytes(p, lot, from, to);
	if (resident && p->r->access.clears)
		charge_access(p, lot, from, to);
}

/* By the names of its bytes. */
static void charge_lot(struct replay *p, const struct lot *lot, u64 from, u64 to)
{
	struct lot l = *lot;
	u64 end;

	l.unnamed = lot->owner;
	for (; from < to; from = end) {
		end = to;
		l.owner = resource_row(p, lot->owner, lot->space, from, &end);
		if (lot->sample.origin)
			l.sample.origin =
				resource_row(p, lot->sample.origin, lot->space, from, &end);
		l.race = lot->race || (p->some_named && alloc_is_busy(p, from, &end));
		charge_named(p, &l, from, end);
	}
}

/* ---- owners ---- */

u32 page_owner(struct replay *p, u32 space, u64 addr, u32 mapping)
{
	struct origin *o = &p->origins[mapping];
	u32 fault;

	if (p->owner == OWNER_ALLOC || o->kind == ORIGIN_FILE || o->kind == ORIGIN_SHMEM ||
	    o->kind == ORIGIN_SPECIAL ||
	    (p->owner == OWNER_AUTO && (o->kind == ORIGIN_MMAP || o->kind == ORIGIN_BRK)))
		return mapping;
	fault = ledger_page(p->ledger, space, addr);
	/* One thread faults on many pages in a row: most calls find the row at once. */
	return fault ? origin_in(p, fault, space) : mapping;
}

/* Only an allocator moves the program break. */
static int is_heap(const struct replay *p, u32 space, const struct ledger_interval *iv, u32 mapping)
{
	const struct origin *o = &p->origins[mapping];

	return !p->r->no_alloc && !p->r->sampled &&
	       (o->heap || o->kind == ORIGIN_BRK ||
		ledger_has_allocs(p->ledger, space, iv->start, iv->end));
}

static void note_sample(struct replay *p, struct lot *lot, const struct ledger_piece *piece)
{
	if (p->owner == OWNER_FAULT || !lot->final)
		return;
	lot->sample = (struct sampled_piece){
		.origin = origin_in(p, piece->origin, lot->space),
		.weight = piece->weight,
		.birth = piece->birth,
	};
	p->origins[lot->mapping].samples = p->picture;
}

/* The piece at at: its owner, class and grade go into the lot. */
static void lot_is(struct replay *p, struct lot *lot, u64 at, int heap,
		   const struct ledger_piece *piece)
{
	enum origin_kind kind = p->origins[lot->mapping].kind;
	u32 origin;

	if (piece->state == LEDGER_LIVE && piece->weight > 1) {
		lot->cls = class_of(kind);
		lot->part = rest_part(p, lot->space, lot->mapping, heap);
		note_sample(p, lot, piece);
		return;
	}
	if (piece->state == LEDGER_NEVER) {
		lot->cls = heap && (kind == ORIGIN_MMAP || kind == ORIGIN_BRK) ? CLASS_SLACK
									       : class_of(kind);
		lot->part = rest_part(p, lot->space, lot->mapping, heap);
		return;
	}
	lot->cls = piece->state == LEDGER_LIVE ? CLASS_LIVE : CLASS_FREED;
	lot->birth = piece->state == LEDGER_LIVE ? piece->birth : ~0ull;
	lot->part = piece_part(p, lot->space, piece);
	/* A page whose birth was not seen may be younger than what was freed there. */
	if (piece->state == LEDGER_FREED && !ledger_page(p->ledger, lot->space, at))
		lot->part = PART_INFERRED;
	if (p->owner == OWNER_FAULT)
		return;
	origin = origin_in(p, piece->origin, lot->space);
	lot->owner = origin ? origin : lot->owner;
}

/* Bytes that the page's owner has, but for what is allocated there. */
static void charge_pieces(struct replay *p, const struct lot *lot, u64 from, u64 to, int heap)
{
	int busy, page_race = lot->race;
	struct ledger_piece piece;
	struct lot l;

	for (; from < to; from = piece.end) {
		/* Whether a page is known ends with it. */
		ledger_piece(p->ledger, lot->space, from, to, &piece);
		busy = alloc_is_busy(p, from, &piece.end);
		l = *lot;
		if (piece.state == LEDGER_FREED && piece.end > (from | (MP_PAGE_SIZE - 1)) + 1)
			piece.end = (from | (MP_PAGE_SIZE - 1)) + 1;
		lot_is(p, &l, from, heap, &piece);
		l.race = page_race || busy;
		charge_lot(p, &l, from, piece.end);
	}
}

void charge_range(struct replay *p, u32 space, const struct ledger_interval *iv, u32 mapping,
		  const struct mp_ev_run *run, u64 start, u64 end, int first, int final)
{
	struct lot lot = {.run = run,
			  .space = space,
			  .mapping = mapping,
			  .first = first,
			  .final = final,
			  .race = run->flags & MP_PAGE_RACING || racing(p, space, start, end)};
	int holds = !p->r->no_alloc && may_hold_allocs(p->origins[mapping].kind);
	int heap = holds && is_heap(p, space, iv, mapping);
	u64 at = start, from = start;
	u32 next;

	for (; at <= end; at += MP_PAGE_SIZE) {
		next = at < end ? page_owner(p, space, at, mapping) : 0;
		if (at > start && next != lot.owner) {
			if (holds) {
				charge_pieces(p, &lot, from, at, heap);
			} else {
				lot.cls = class_of(p->origins[mapping].kind);
				lot.part = owner_part(p, &p->origins[mapping]);
				charge_lot(p, &lot, from, at);
			}
			from = at;
		}
		lot.owner = next;
	}
}

/* What is reserved of these bytes, by their names. */
static void charge_reserved_by(struct replay *p, u32 space, u32 origin, u64 from, u64 to,
			       enum cost_part part, int race)
{
	u64 end;
	u32 row;

	for (; from < to; from = end) {
		end = to;
		row = resource_row(p, origin, space, from, &end);
		charge_as(p, row, COST_RESERVED, (s64)(end - from), part,
			  race || (p->some_named && alloc_is_busy(p, from, &end)));
	}
}

static void sample_reserved(struct replay *p, const struct sampled_piece *sample, u32 space, u64 at,
			    u64 to)
{
	struct sampled_piece s = *sample;
	u64 end;

	for (; at < to; at = end) {
		end = to;
		s.origin = resource_row(p, sample->origin, space, at, &end);
		sample_charge(p, &s, COST_RESERVED, (s64)(end - at));
	}
}

u32 byte_owner(struct replay *p, u32 space, u64 addr)
{
	struct ledger_interval iv;
	struct ledger_piece piece = {.state = LEDGER_NEVER};
	u64 end = addr + 1;
	u32 mapping, owner;

	if (!ledger_find(p->ledger, space, addr, &iv))
		return 0;
	mapping = origin_in(p, iv.origin, space);
	if (!mapping)
		return 0;
	if (!p->r->no_alloc && may_hold_allocs(p->origins[mapping].kind) && p->owner != OWNER_FAULT)
		ledger_piece(p->ledger, space, addr, iv.end, &piece);
	owner = piece.state == LEDGER_NEVER ? page_owner(p, space, addr, mapping)
					    : origin_in(p, piece.origin, space);
	return owner ? resource_row(p, owner, space, addr, &end) : 0;
}

void charge_reserved(struct replay *p, u32 space, const struct ledger_interval *iv)
{
	u32 mapping = origin_in(p, iv->origin, space), origin;
	int race = racing(p, space, iv->start, iv->end), heap, busy;
	struct lot lot = {.space = space, .owner = mapping, .mapping = mapping, .final = 1};
	struct ledger_piece piece = {.end = iv->end};
	enum cost_part part;
	u64 at;

	if (p->r->no_alloc || !may_hold_allocs(p->origins[mapping].kind)) {
		charge_reserved_by(p, space, mapping, iv->start, iv->end,
				   owner_part(p, &p->origins[mapping]), race);
		return;
	}
	heap = is_heap(p, space, iv, mapping);
	for (at = iv->start; at < iv->end; at = piece.end) {
		ledger_piece(p->ledger, space, at, iv->end, &piece);
		busy = alloc_is_busy(p, at, &piece.end);
		origin = mapping;
		part = rest_part(p, space, mapping, heap);
		lot.sample.origin = 0;
		if (piece.state == LEDGER_LIVE && piece.weight > 1) {
			note_sample(p, &lot, &piece);
			if (lot.sample.origin)
				sample_reserved(p, &lot.sample, space, at, piece.end);
		} else if (piece.state == LEDGER_LIVE) {
			origin = origin_in(p, piece.origin, space);
			part = piece_part(p, space, &piece);
		}
		charge_reserved_by(p, space, origin, at, piece.end, part, race || busy);
	}
}
