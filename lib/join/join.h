/* SPDX-License-Identifier: GPL-2.0-only
 * Joins the ledger with walks and faults into rows: who owns which cost, and how well that is
 * known. Attributed and unattributed come from the ledger and the walk alone; the kernel's totals
 * are only ever compared with them. */
#ifndef MP_JOIN_JOIN_H
#define MP_JOIN_JOIN_H

#include <stddef.h>
#include "lib/trace/rules.h"
#include "lib/trace/trace.h"

enum cost_id {
#define MP_COST(NAME, name, header, unit, kind, additive, doc) COST_##NAME,
#include "lib/join/cost.def"
#undef MP_COST
	COST_MAX
};
enum cost_kind { COST_STOCK, COST_FLOW };

struct cost_column {
	const char *name, *header, *unit, *doc;
	enum cost_kind kind;
	int additive;
};
extern const struct cost_column cost_columns[COST_MAX];
/* Index of a column, or -1; then *ret_near is the nearest name. */
int cost_find(const char *name, const char **ret_near);

/* Does a capability of HOOK feed columns of what becomes of pages, and nothing else? */
int join_is_life(const char *capability);

struct report;
/* Why a column has no evidence in this recording, NULL when it may have. */
const char *cost_absent(const struct report *r, enum cost_id id);

/* value = exact + inferred + sampled. known 0: no evidence, printed as - and null. */
struct cost {
	s64 exact, inferred, sampled;
	s64 counted; /* of inferred: so much it is, only its owner's name is inferred */
	s64 sure; /* of sampled: so much it is at 95% */
	double variance; /* of sampled; 0: not said, its bounds only add up */
	u32 n; /* samples that it was estimated from */
	s64 hi; /* upper bound where the column is a lower bound, else the value */
	u8 known;
	u8 open; /* not exact, even where it is 0 */
};

static inline s64 cost_value(const struct cost *c)
{
	return c->exact + c->inferred + c->sampled;
}

/* The truth lies between; both are the value when all of it is exact. */
static inline s64 cost_lo(const struct cost *c)
{
	s64 sure = c->exact + c->counted + c->sure;

	return sure < cost_value(c) ? sure : cost_value(c);
}

static inline int cost_is_open(const struct cost *c)
{
	return c->inferred || c->sampled || c->open;
}

static inline s64 cost_hi(const struct cost *c)
{
	return cost_is_open(c) && c->hi > cost_value(c) ? c->hi : cost_value(c);
}

struct memcg;

enum origin_kind {
	ORIGIN_MALLOC,
	ORIGIN_MMAP,
	ORIGIN_BRK,
	ORIGIN_STACK,
	ORIGIN_FAULT,
	ORIGIN_FILE,
	ORIGIN_SHMEM,
	ORIGIN_MEMCG,
	ORIGIN_SPECIAL,
	ORIGIN_PREEXISTING,
	ORIGIN_UNATTRIBUTED,
	ORIGIN_PROCESS, /* only of a row that is all of a process */
	ORIGIN_NODE, /* only of a row that is all of a NUMA node */
	ORIGIN_RESOURCE, /* or of a resource */
	ORIGIN_KINDS
};
extern const char *const origin_kind_names[ORIGIN_KINDS];

/* Every resident byte is in exactly one, by the allocation or mapping it lies in, whoever owns it.
 * Where allocations were not recorded live is a mapping that still exists, and freed and slack are
 * unknown parts of it. */
enum mem_class {
	CLASS_LIVE,
	CLASS_FREED,
	CLASS_SLACK,
	CLASS_PREEXISTING,
	CLASS_FILE,
	CLASS_SHMEM,
	CLASS_STACK,
	CLASS_SPECIAL,
	CLASS_UNATTRIBUTED,
	CLASS_MAX
};
extern const char *const mem_class_names[CLASS_MAX];

struct frame {
	u64 addr, offset;
	u32 line;
	u8 inlined;
	u8 runtime; /* of an interpreter: addr is a code object's */
	const char *function, *module, *build_id, *file; /* NULL unknown */
};

struct row {
	enum origin_kind kind;
	const char *name; /* file, class or mapping; NULL when the stack names it */
	const char *evidence; /* what made it of its class, NULL: it is not classed by shape */
	u32 pid, space;
	const char *comm;
	const char *host; /* of several recordings: whose; NULL: there is one, or all have a part */
	int called; /* name is a function's */
	int several; /* processes have a part in it: no pid, no comm */
	u64 stack;
	u64 ino; /* of a file or a shared memory object, else 0; with dev */
	u32 dev; /* major << 20 | minor */
	u32 twin; /* which of several of its name, 0: there is one */
	u64 multi; /* of resident: bytes that another row has, too; 0 unknown where rows are merged
		    */
	const char
		*resource; /* what the application, or a rule of --names, calls it; NULL nothing */
	u8 ruled; /* by a rule */
	u8 misnamed; /* what was lost may have been its name, or the end of that */
	u64 since; /* faulted after the last picture of a recording that does not end with one */
	u32 generations; /* mappings that had this origin */
	struct frame *frames; /* innermost first */
	u32 nr_frames;
	u8 interpreted; /* some of them are an interpreter's */
	u8 unwound_by, unwound_end; /* enum mp_unwind, mp_stack_end; by 0: not said */
	struct cost cost[COST_MAX];
	char id[24];
};

enum check_status { CHECK_OK, CHECK_RESIDUAL, CHECK_DRIFT, CHECK_UNJUDGED };
extern const char *const check_status_names[];

struct check {
	int judged; /* the kernel's figure is there */
	u64 kernel, kernel_before, attributed, unattributed, tolerance;
	u64 lag; /* the kernel's own counter may be behind by this */
	s64 residual;
	enum check_status status;
	const char *scope; /* NULL: space */
	const char *reason;
};

enum owner_mode { OWNER_AUTO, OWNER_ALLOC, OWNER_FAULT };
extern const char *const owner_names[]; /* by enum owner_mode */
/* auto, alloc or fault; -EINVAL. */
int owner_parse(const char *text, enum owner_mode *ret_mode);

/* What is known of a resource of a space when the recording ended. */
struct resource {
	u32 space;
	const char *name;
	struct cost idle;
};

struct loss_cause {
	const char *name, *doc;
	u64 count;
};

/* Set by the operator while it was recorded; time since the start. */
struct mark {
	u64 time_ns;
	const char *text;
};

struct report {
	struct row *rows;
	size_t nr_rows;
	char *names; /* of rows that share one, made to differ */
	char **texts; /* made for rows, by report_text() */
	size_t nr_texts;
	struct report **parts; /* of several recordings, in the order they were named; else NULL */
	size_t nr_parts;
	struct cost total[COST_MAX];
	struct check check[COST_MAX];
	u64 start_realtime, duration_ns, picture_age_ns;
	u64 at_ns; /* as of this time, before the end; 0: the end */
	const char *host, *kernel, *arch;
	const char *label; /* of one of several: its host, or more; what rows call host */
	struct {
		u32 pid;
		const char *comm;
		u64 status; /* 1 + that of its end as wait(2) gives it, 0 not known or running */
	} * targets;
	size_t nr_targets;
	struct {
		const char *capability, *provider, *stability, *reason;
	} hooks[32];
	size_t nr_hooks;
	int no_frames; /* pages whose number of mappings is unknown were met */
	int no_nodes; /* pages on no known NUMA node were met */
	const char *no_growth; /* why there is none to see, NULL: there is */
	/* Why these were not recorded, NULL: they were. */
	const char *no_map, *no_fault, *no_alloc;
	int sampled; /* allocations: not each was announced */
	const char *no_life[COST_MAX]; /* of columns with a hook of their own */
	struct loss_cause losses[MP_LOSS_MAX];
	struct mark *marks;
	size_t nr_marks;
	struct resource *resources; /* by space and name */
	size_t nr_resources;
	int some_resources; /* there are any; of merged reports they are with the parts */
	u64 lost, mp_events, unknown_frames, frames;
	u64 stacks, stacks_deep, stacks_cut; /* of rows; deep and cut ones lack callers */
	struct {
		int on; /* the recording goes on */
		u64 age_ns; /* of the picture */
		u64 window_ns; /* from the picture before to it; 0: it is the first */
		s64 grown; /* resident, in the window */
		u64 cpu_ns; /* memprov's own, since the table before; 0: this is the first */
		double cpu; /* in cores */
	} live;
	struct {
		u32 clears; /* 0: accessed bits were not watched */
		u32 doubts; /* MP_DOUBT_* */
		u64 took_ns; /* the longest clear */
		u64 huge; /* bytes of touched by huge entries, of which one bit tells */
	} access;
	struct {
		int on;
		const char *file;
		u64 total, placed, lost, throttled; /* placed: of a process that was recorded */
		int clock; /* the file has the recording's clock */
		int unranked; /* its halves disagree about who has how many */
	} samples;
	int truncated, stable, has_walk;
	int end; /* enum mp_end, -1: the recording did not end in order */
	struct {
		u32 kind, pid; /* enum mp_trigger; pid: who was killed */
		const char *expr, *memcg; /* NULL: none */
		u64 value, limit, time_ns, picture_age_ns;
	} trigger; /* why a flight recorder wrote the file */
	struct cost classes[CLASS_MAX]; /* of resident */
	struct memcg *memcg; /* NULL: no cgroup was recorded; see memcg.h */
	struct trace_reader *reader; /* of a file: strings live here */
};

/* 1: the recording ended in order and has all of it. */
static inline int report_complete(const struct report *r)
{
	return r->end >= 0 && r->end != MP_END_SIZE;
}

/* Join the file of a reader that has returned nothing yet; takes the reader, also on failure. 0 or
 * -errno as trace_reader_next. */
int join_trace(struct trace_reader *reader, enum owner_mode owner, struct report **ret_r);
/* Read a trace and join it. 0 or -errno as trace_reader_open and trace_reader_next. */
int join_file(const char *path, enum owner_mode owner, struct report **ret_r);
/* The same as of so long after the start: what came later is not looked at. -ERANGE: it did not
 * last so long; then *ret_duration. */
int join_file_at(const char *path, enum owner_mode owner, u64 at_ns, struct report **ret_r,
		 u64 *ret_duration);

/* What a recording had at some time. */
struct moment {
	u64 time_ns; /* since its start */
	u64 picture_ns; /* when the picture was taken that the stocks are of, 0 none yet */
	struct cost total[COST_MAX];
};
/* At most n moments at equal distances, the last one at its end, to be freed. */
int join_timeline(const char *path, enum owner_mode owner, size_t n, struct moment **ret_all,
		  size_t *ret_n);

/* merge.c: several recordings as one, with host labels; takes the parts, also on failure. */
int join_merge(struct report **parts, size_t nr, const char *const *paths, struct report **ret_r);
/* A text that lives as long as the report; NULL without memory. */
const char *report_text(struct report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* group.c: merge rows that look alike under a grouping. -EINVAL: there is no such grouping.
 * Afterwards no two rows have the same id and pid (and host). */
int join_group(struct report *r, const char *group);
extern const char *const join_groups[]; /* NULL ends */
/* Names rows by these rules, and no others: what the application named itself stays. The texts must
 * live as long as r. */
void join_rules(struct report *r, const struct name_rule *rules, size_t nr);
/* When it is asked by name: of a row that may have another, all is inferred. */
void join_doubt_names(struct report *r);
/* Largest first; then by resident, then by name. */
void join_sort(struct report *r, int column);
/* More than one process has rows. */
int join_is_many(const struct report *r);
/* The innermost frame that is neither inlined nor in the C library, its loader or an allocator: the
 * program's own. NULL: none is. */
const struct frame *row_own_frame(const struct row *row);
/* That frame's function, else the innermost function that was really called. NULL unknown. */
const char *row_function(const struct row *row);
/* How its stack was unwound, and where that ended. NULL: no stack, or not said. */
const char *row_unwound_by(const struct row *row);
const char *row_unwound_end(const struct row *row);
int frame_is_plumbing(const struct frame *f);
/* Plumbing, or beside functions of an interpreter the code that runs them. */
int row_passes_over(const struct row *row, const struct frame *f);
int frame_is_made(const struct frame *f); /* at run time: its place tells nothing */
/* The first frame, inlined or not, that is not plumbing; 0 where all are. */
u32 row_program_frames(const struct row *row);
#define FRAME_LABEL 264
/* To be printed: the function, else its file in brackets, else [unknown]. */
const char *frame_label(const struct frame *f, char *buf, size_t len);

void join_free(struct report **r);

#endif
