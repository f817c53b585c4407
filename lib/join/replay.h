/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to lib/join: the state of one replay, shared by its files. */
#ifndef MP_JOIN_REPLAY_H
#define MP_JOIN_REPLAY_H

#include "lib/join/join.h"
#include "lib/ledger/ledger.h"

struct origin {
	enum origin_kind kind;
	u32 space, pid, name; /* string id; for classes see class_name */
	const char *class_name;
	const char *comm;
	u64 stack;
	u64 ino; /* of a file or shared memory object: one name may be several */
	u32 dev; /* major << 20 | minor */
	u32 resource; /* string id of what the application calls these bytes, 0 nothing */
	u32 base; /* the same owner's origin of what has no name; 0: this is it */
	u32 generations;
	u32 next_unused;
	int unused; /* the number is free: nobody has it */
	int grows; /* mapped with MAP_GROWSDOWN */
	int heap; /* mapped by an allocator */
	u32 samples; /* the last picture in which sampled allocations lay in it */
	struct estimate *estimate; /* sample.c; NULL: none */
	u64 mapped; /* bytes of all it ever had */
	u64 last_seq; /* of an unfinished recording: the latest record about it */
	struct cost cost[COST_MAX];
	u64 resident_start;
	u64 unseen; /* bytes whose accessed bits say nothing: they may have been touched */
	u64 halves[2]; /* its samples in the first and in the second half of all */
	double weight_squares; /* sum over its samples */
	u64 late; /* bytes that were cold for as long as they were watched: not for all of the time
		   */
	int stirred; /* mapped, unmapped or given back in part while accessed bits were watched */
	u64 moved; /* pages now under a faulting stack: they may have been here at the start */
	u64 elsewhere; /* pages that unique counts in another row */
	u64 multi; /* resident bytes that another row has, too */
	u64 since; /* faulted after the last picture of a recording that does not end with one */
};

struct space_state {
	u32 id, pid, members, pictures;
	u32 parent; /* the space it was forked from, 0 none */
	const char *comm;
	u64 status; /* 1 + that of its end as wait(2) gives it, 0 not known or running */
	int attached, ended, pictured; /* pictured: in the final picture */
	int gone; /* nobody refers to it any more */
	u64 born_ns;
	u64 lost[MP_CLASS_MAX];
	u64 alloc_hole; /* allocations born up to this event may be gone, or others be there */
	u64 picture_seq; /* of an unfinished recording: end of its last picture, 0 none; since then
			  */
	u64 grew, gained; /* mapped at most; gained backing */
	u64 unplaced; /* faults at an address that no mapping has */
	struct access_space *access; /* access.c; NULL: nothing is known */
	s64 doubtful[COST_MAX]; /* inferred parts of its rows: after a loss anybody's */
};

struct space_loss {
	u32 space, cls;
	u64 count;
	u64 seq; /* of the last record of it */
};

/* Bytes whose owner changed while a picture was taken. */
struct busy {
	u64 start, end;
};

/* A part of a sampled allocation. */
struct sampled_piece {
	u32 origin; /* 0: it is none */
	float weight;
	u64 birth;
};

/* What there is of one in the picture being read. */
struct sampled_object {
	u32 origin; /* 0: none was met */
	float weight;
	u64 birth;
	s64 bytes[COST_MAX];
};

/* What a fault costs. */
struct fault_cost {
	u32 space, tid, fault, mapping; /* fault: origin by stack; mapping: of the page */
	u64 addr, seq, stall;
	s64 bytes, touched, copied;
};

#define MP_NODE_COLUMNS 8u /* node0 to node7 of cost.def */

/* A range whose mapping changed while a picture of it was taken: its owner there is inferred. */
struct race {
	u32 space;
	u64 start, end;
};

/* A range mapped while a picture was taken, or about to be when it began: one the picture may show
 * before its call is known, or may have come too early for. */
struct birth {
	u64 start, end;
	u32 origin; /* 0: moved from .from on, the bytes keep theirs */
	u64 from;
	int seen; /* before its part of the picture was all read */
	u32 order; /* of the calls; the array is by start */
	u64 reach; /* highest end among this one and those in front of it */
};

/* A range whose munmap has entered and not returned: the ledger has dropped it, a picture may still
 * show it. */
struct leaving {
	u32 space, origin;
	u64 start, end;
	u64 seq; /* of its UNMAP */
	int claimed; /* a picture did, and the ledger has it again */
};

/* A record of a call that maps or unmaps, in the order of spaces. */
struct map_call {
	u32 space;
	size_t item; /* among those pending */
	u64 earliest; /* entry among it and those behind it in its space */
};

/* A range of a forked space that its parent mapped or unmapped while it forked. */
struct doubt {
	u32 space, origin; /* origin: who has it when the child has it; 0 not known */
	u64 start, end;
};

/* A huge page that is known to have been there. */
struct huge {
	u32 space;
	u64 addr;
};

/* Part of a picture, and the events between which it was read. */
struct chunk {
	u64 start, end, seq_begin, seq_end;
};

struct vma_seen {
	struct mp_ev_vma ev;
	u32 space, walk;
};

struct store {
	u8 *arena;
	size_t len, room;
	struct item {
		u64 seq;
		size_t at;
	} * items;
	size_t nr, cap;
};

/* Faults, which are most of a file, are not gathered: the second pass over it brings them while the
 * other records are applied, with a window in which they are put in order. */
struct stream {
	struct trace_reader *reader; /* NULL: faults come with the others */
	struct store window;
	size_t next; /* of the window, to be applied */
	u64 floor; /* nothing below comes any more */
	int done;
};

/* order.c: by seq. The array may move; what was reserved behind nr is then gone. */
int order_items(struct item **items, size_t nr, size_t *cap);

/* Stacks and symbols in the order they are looked up; made again when there are new ones. */
struct name_index {
	const struct mp_hdr **stacks, **symbols;
	size_t nr_stacks, nr_symbols, made_for;
};

/* How well a part of a cost is known. */
enum cost_part {
	PART_INFERRED,
	PART_COUNTED, /* inferred, but only whose it is */
	PART_EXACT,
};

/* What an application said of a resource. */
struct resource_state {
	u32 space, name; /* name: string id */
	u64 begun_ns, used_ns; /* 0 not seen */
	u64 read_ns; /* when used_ns was read */
};

struct shared_page {
	u64 pfn_id; /* 0: free */
	u32 origin; /* has it in unique */
	u32 part : 3; /* enum cost_part */
	u32 multi : 1; /* other rows have it, too */
	u32 times : 28; /* met in the first row while it was that row's alone */
};

struct replay {
	struct report *r; /* what was said of the recording; costs and rows are made from it */
	struct ledger *ledger;
	enum owner_mode owner;
	const char *(*text)(const void *ctx, u32 id);
	const void *text_ctx;
	struct store pending; /* records not yet applied */
	struct store named; /* STACK, each id once, and SYMBOL */
	u64 *stacks; /* open addressing: ids in named */
	size_t nr_stacks, cap_stacks;
	struct stream stream;
	struct name_index names;
	u64 applied; /* every record up to this number was */
	int cut; /* nothing comes behind the step, as when the recorder was killed there */
	u64 until_ns; /* a step leaves what came later; 0: it goes by numbers alone */
	int open; /* more may come */
	struct origin *origins; /* index is the ledger's origin number; 0 unused */
	u32 nr_origins, cap_origins;
	u32 unused_origin; /* first of a list, 0 none */
	u32 *hash; /* open addressing over origins */
	u32 hash_size;
	struct space_state *spaces;
	u32 nr_spaces, nr_pictured;
	u32 *space_index, space_index_size; /* by id: number in spaces, from 1 */
	struct shapes *shapes; /* shape.c: what the walk being read shows of whom */
	struct vma_seen *vmas; /* of the walk being read */
	size_t nr_vmas, cap_vmas;
	u64 walked; /* the picture being read has come to this address */
	struct space_loss *lost;
	u32 nr_lost;
	struct race *races;
	u32 nr_races;
	struct birth *births; /* of the walk being read */
	u32 nr_births;
	struct map_call *calls; /* all that are pending */
	size_t nr_calls, cap_calls;
	struct doubt *doubts;
	u32 nr_doubts;
	struct busy *busy; /* of the walk being read, sorted, apart */
	size_t nr_busy, cap_busy;
	struct fault_cost *held; /* inside a call of an allocator that has not returned */
	size_t nr_held, cap_held;
	struct sampled_object object;
	u32 picture; /* number of the picture that gives the stocks */
	struct resource_state *resources; /* open addressing */
	u32 nr_resources, cap_resources;
	int some_named; /* ranges have names */
	u64 uses_ns; /* when uses were read last */
	struct name_rule *rules;
	size_t nr_rules;
	int some_allocs; /* not all allocations were recorded */
	struct {
		u64 page;
		u32 space;
		s64 unique; /* of a page of several owners, whether it counts */
	} split;
	struct leaving *leaving;
	u32 nr_leaving;
	struct huge *huge; /* by space and address */
	size_t nr_huge, cap_huge;
	struct chunk *chunks; /* of the walk being read */
	u32 nr_chunks;
	u64 nr_samples, sample_at; /* imported, of processes here; the next one to be applied */
	u32 first_clear; /* the walk before the first CLEAR of accessed bits */
	u32 accounted; /* up to this walk it is known what may have changed accessed bits */
	struct shared_page *shared; /* of the final picture: unique counts each once */
	size_t nr_pfns, cap_pfns;
	s64 raced[COST_MAX]; /* of the last picture: inferred because the mapping changed */
	int unfinished; /* it does not end with a picture */
	int blind; /* no mapping call was seen: an owner may have changed unseen */
	u64 first_ns, last_ns, last_walk_ns;
	u64 window_begin, window_end; /* the recorded time, 0 unknown */
	u32 nr_cpus;
	int unstable; /* a space ran on while the final picture was taken */
	int err;
};

static inline const struct mp_hdr *store_rec(const struct store *s, size_t i)
{
	return (const struct mp_hdr *)(s->arena + s->items[i].at);
}

static inline const struct mp_hdr *replay_rec(const struct replay *p, size_t i)
{
	return store_rec(&p->pending, i);
}

static inline const char *replay_text(const struct replay *p, u32 id)
{
	return p->text(p->text_ctx, id);
}

/* replay.c */
int store_keep(struct store *s, const struct mp_hdr *rec); /* a copy */
/* nr records of one size behind each other. */
int store_keep_all(struct store *s, const struct mp_hdr *first, u32 nr);
int store_drop(struct store *s, size_t n); /* the first n */
void store_release(struct store *s);
/* What a record says of the recording just by being there. */
void note_seen(struct replay *p, const struct mp_hdr *rec);
int note_loss(struct replay *p, const struct mp_hdr *rec, const struct mp_ev_loss *loss);
/* A space that is born bears the losses that concern every space. */
void losses_before(struct replay *p, struct space_state *s);

/* race.c: mapping calls that ran while a picture was taken. */
int add_race(struct replay *p, u32 space, u64 start, u64 end);
int racing(const struct replay *p, u32 space, u64 start, u64 end);
/* Before the pending records are applied. */
int index_calls(struct replay *p);
/* Those of the picture that begins at pending record i. */
int find_races(struct replay *p, size_t i);
/* The call that made this range, when its record comes behind the picture that shows it; 0 none. */
u32 born_meanwhile(const struct replay *p, u32 space, u64 start, u64 end);
int born_late(const struct replay *p, u64 start, u64 end);
/* A munmap enters, before the ledger hears of it; it returns; another mapping lies there now. */
int unmap_begins(struct replay *p, const struct mp_hdr *rec);
int unmap_ends(struct replay *p, const struct mp_hdr *rec);
void unmap_is_done(struct replay *p, u32 space, u64 start, u64 end);
/* Where what is said of address at by a munmap under way changes next, at most end. */
u64 leaving_until(const struct replay *p, u32 space, u64 at, u64 end);
/* The owner of a range that is being unmapped, who has it again until then; 0 none. */
u32 still_leaving(struct replay *p, u32 space, u64 start, u64 end);

/* life.c: EDGE and RECLAIM; which of the columns it feeds have a hook. */
int life_apply(struct replay *p, const struct mp_hdr *rec);
void life_begin(struct report *r);
void life_note(struct report *r, const char *capability, int absent, const char *why);
int life_is_edge(int column); /* is a column one of its own? */
int life_has_evidence(const struct origin *o, int column);
/* One for who has the page at addr. */
void life_count(struct replay *p, u32 space, u64 addr, enum cost_id column);

/* huge.c: one is there; it is not any more, where all of it lies in [start, end); mremap; a run of
 * the last picture in small pages, which counts what was split. */
int huge_add(struct replay *p, u32 space, u64 addr);
void huge_forget(struct replay *p, u32 space, u64 start, u64 end);
int huge_move(struct replay *p, u32 space, u64 old, u64 len, u64 to);
void huge_split(struct replay *p, u32 space, const struct mp_ev_run *run);

/* stream.c: applies the faults up to this number. */
int stream_until(struct replay *p, u64 seq);

/* When the call of a record entered: 0, it is none that maps or unmaps. */
u64 call_entry(const struct mp_hdr *rec);
/* The first of the calls of a space that returned after seq. */
size_t calls_after(const struct replay *p, u32 space, u64 seq);

/* inherit.c: a fork, once its space is there; is a range of a child in doubt; who has it then, 0
 * not known; it is mapped anew, or gone. */
int inherit(struct replay *p, const struct mp_hdr *fork);
int is_doubted(const struct replay *p, u32 space, u64 start, u64 end);
u32 inherited_from(const struct replay *p, u32 space, u64 start, u64 end);
void doubts_end(struct replay *p, u32 space, u64 start, u64 end);

/* sweep.c: after a step of a recording that goes on. */
int sweep(struct replay *p);

/* join.c: everything but a walk's contents. */
u32 map_origin(struct replay *p, const struct mp_hdr *map);
int join_apply(struct replay *p, const struct mp_hdr *rec, u32 final_walk);
int join_fault(struct replay *p, const struct mp_hdr *rec);

/* Number of the origin with this key, made on first use. 0: -ENOMEM in p->err. */
u32 origin_get(struct replay *p, enum origin_kind kind, u32 space, u64 stack, u32 name,
	       const char *class_name);
/* The same for a file or a shared memory object. */
u32 origin_of_object(struct replay *p, enum origin_kind kind, u32 space, const struct mp_ev_vma *v);
/* The row of what the owner has under a name. 0: -ENOMEM in p->err. */
u32 origin_named(struct replay *p, u32 origin, u32 resource);
/* The row of the same owner in another space. 0: -ENOMEM in p->err. */
u32 origin_in(struct replay *p, u32 origin, u32 space);
/* Flows are of the recorded time, as the duration is; owners are of all that was seen. */
int in_window(const struct replay *p, u64 time_ns);
int faults_are_of_mapping(const struct replay *p, enum origin_kind mapping);
/* The hash of the origins in use made anew, for size places. */
int origin_rehash(struct replay *p, u32 size);
struct space_state *space_get(struct replay *p, u32 id);
void space_reindex(struct replay *p); /* the array has others, not more */
void cost_add(struct cost *c, s64 exact, s64 inferred);
void part_add(struct cost *c, enum cost_part part, s64 amount);
/* Adds what a fault costs to an owner. */
void charge_fault(struct replay *p, u32 origin, const struct fault_cost *f);

/* alloc.c: allocations. */
int alloc_apply(struct replay *p, const struct mp_hdr *rec);
/* A fault gave a page new backing, or a copy; before the ledger hears of it. */
int alloc_fault(struct replay *p, const struct mp_hdr *rec);
u32 alloc_fault_owner(struct replay *p, const struct fault_cost *f);
/* The owner of a fault inside a call of an allocator is known when that returns. */
int alloc_hold(struct replay *p, const struct fault_cost *f);
/* Those whose calls did not return an allocation. */
void alloc_release(struct replay *p);
/* Bytes that change hands while the walk at pending record i is taken. */
int alloc_find_busy(struct replay *p, size_t i);
int alloc_is_busy(const struct replay *p, u64 at, u64 *end);
/* Does a mapping of this kind hold allocations, or is it a file's or object's whatever they say? */
int may_hold_allocs(enum origin_kind mapping);

/* resource.c: names that applications give. apply: a record of them. */
int resource_apply(struct replay *p, const struct mp_hdr *rec);
/* A VMA as a picture shows it: PR_SET_VMA_ANON_NAME. */
int resource_of_vma(struct replay *p, u32 space, const struct mp_ev_vma *v);
/* The row of what an owner has at addr: of its name there. How far, but not beyond *end, it goes
 * on. */
u32 resource_row(struct replay *p, u32 origin, u32 space, u64 addr, u64 *end);
/* What was said of each, into the report; then a name for each row that has one. */
int resource_report(struct replay *p, struct report *r);
/* What --names says, of its recording. */
int resource_rule(struct replay *p, const struct mp_hdr *rec);

/* charge.c: who is charged how much, and how well that is known. */
enum cost_part page_part(struct replay *p, const struct origin *o);
void charge(struct replay *p, u32 origin, enum cost_id id, s64 amount, int race);
/* The resident or swapped bytes [start, end) of run, all in one interval of the ledger. */
void charge_range(struct replay *p, u32 space, const struct ledger_interval *iv, u32 mapping,
		  const struct mp_ev_run *run, u64 start, u64 end, int first, int final);
/* Who has the page at addr of a mapping, allocations aside. */
u32 page_owner(struct replay *p, u32 space, u64 addr, u32 mapping);
/* Who has the byte at addr now; 0: nobody known. */
u32 byte_owner(struct replay *p, u32 space, u64 addr);
/* What is reserved in an interval. */
void charge_reserved(struct replay *p, u32 space, const struct ledger_interval *iv);
int knows_charges(const struct replay *p);

/* walk.c: a walk's VMAs and runs against the ledger. final: this picture gives the stocks. */
int walk_vma(struct replay *p, const struct mp_hdr *rec);
int walk_run(struct replay *p, const struct mp_hdr *rec, int final);
int walk_finish(struct replay *p, const struct mp_hdr *rec, int final);
void walk_check(struct replay *p, const struct mp_hdr *rec);
/* What an origin's row says: its flows, and the stocks of the last picture. */
void walk_costs(struct replay *p, const struct origin *o, struct cost *ret);
/* Totals and checks. */
void walk_judge(struct replay *p, struct report *r);

/* Is an owner in this space in doubt, because a mapping call or a process event was lost? */
int lost_calls(struct replay *p, u32 space);

/* after.c: records behind the last picture of a recording that does not end with one. */
void after_begin(struct replay *p);
void after_note(struct replay *p, const struct mp_hdr *rec); /* before it is applied */
int after_is_late(struct replay *p, u32 space, u64 seq); /* behind the last picture of a space */
void after_owner(struct replay *p, u32 origin, const struct mp_hdr *rec);
void after_fork(struct replay *p, struct space_state *child); /* it has its ledger */
void after_picture(struct space_state *s, u64 seq); /* the last one of s has ended */
void after_costs(struct replay *p, const struct origin *o, struct cost *costs);
void after_bound(struct replay *p, const struct origin *o, struct cost *costs);
void after_totals(struct replay *p, struct report *r);

/* sample.c: a sampled allocation has amount of a column in the picture that gives the stocks. */
void sample_charge(struct replay *p, const struct sampled_piece *piece, enum cost_id id,
		   s64 amount);
void sample_forget(struct replay *p); /* another picture will */
/* Before a report: what it says of sampled allocations. */
int sample_settle(struct replay *p);
int sample_is_site(const struct origin *o); /* its allocations are sampled */
void sample_costs(struct replay *p, const struct origin *o, struct cost *costs);
void sample_bound(struct replay *p, const struct origin *o, struct cost *costs);
void sample_release(struct origin *o);

/* unique.c: a page that several mappings hold is met in a row: bytes of it that the row has. */
s64 unique_page(struct replay *p, u64 pfn_id, u32 origin, enum cost_part part);

/* memcg.c: the recorded cgroup. note: records of it; rows: what no process of it maps; judge: its
 * check, once the columns are summed up. */
int memcg_note(struct replay *p, const struct mp_hdr *rec);
int memcg_rows(struct replay *p);
int memcg_is_read(const struct memcg *m); /* as it was at the end */
void memcg_judge(struct report *r);
int memcg_copy(const struct memcg *m, struct memcg **ret_m);
void memcg_free(struct memcg **m);

/* names.c: a STACK or SYMBOL to be looked up later; a stack that is there already is not. */
int names_keep(struct replay *p, const struct mp_hdr *rec);
/* Was it mapped inside a function of an allocator, as its stack says? */
int names_is_allocators(struct replay *p, const struct origin *o);
/* A row with frames for every origin that costs something. */
int names_attach(struct replay *p, struct report *r);
void names_release(struct replay *p);

/* group.c: FNV-1a; NULL is a text of its own. */
#define HASH_SEED 0xcbf29ce484222325ull
u64 hash_text(u64 h, const char *s);

#endif
