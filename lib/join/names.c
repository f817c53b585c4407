/* SPDX-License-Identifier: GPL-2.0-only
 * Origins become rows with frames. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/join/access.h"
#include "bpf/shared/python.h"
#include "lib/join/memsample.h"
#include "lib/join/shape.h"

static u64 *slot_of(u64 *set, size_t cap, u64 id)
{
	size_t i = id & (cap - 1);

	while (set[i] && set[i] != id)
		i = (i + 1) & (cap - 1);
	return &set[i];
}

static int grow_stacks(struct replay *p)
{
	size_t cap = p->cap_stacks ? p->cap_stacks * 2 : 1024, i;
	u64 *set = calloc(cap, sizeof(*set));

	if (!set)
		return -ENOMEM;
	for (i = 0; i < p->cap_stacks; i++)
		if (p->stacks[i])
			*slot_of(set, cap, p->stacks[i]) = p->stacks[i];
	free(p->stacks);
	p->stacks = set;
	p->cap_stacks = cap;
	return 0;
}

/* Frames found afterwards, from the copy that came with a stack. */
static int is_second(const struct mp_hdr *rec)
{
	return rec->type == MP_EV_STACK && trace_body(rec, stack)->method == MP_UNWIND_COPY;
}

/* The recorder forgets what it has sent: a stack may come any number of times. Ids are hashes. */
int names_keep(struct replay *p, const struct mp_hdr *rec)
{
	u64 id = rec->type == MP_EV_STACK ? trace_body(rec, stack)->id : 0, *at;

	if (id && !is_second(rec)) {
		if (p->nr_stacks * 2 >= p->cap_stacks && grow_stacks(p))
			return -ENOMEM;
		at = slot_of(p->stacks, p->cap_stacks, id);
		if (*at)
			return 0;
		*at = id;
		p->nr_stacks++;
	}
	return store_keep(&p->named, rec);
}

static int cmp_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static int by_stack(const void *a, const void *b)
{
	const struct mp_hdr *x = *(const struct mp_hdr *const *)a;
	const struct mp_hdr *y = *(const struct mp_hdr *const *)b;

	if (trace_body(x, stack)->id != trace_body(y, stack)->id)
		return cmp_u64(trace_body(x, stack)->id, trace_body(y, stack)->id);
	return is_second(y) - is_second(x);
}

static int by_addr(const void *a, const void *b)
{
	const struct mp_hdr *x = *(const struct mp_hdr *const *)a;
	const struct mp_hdr *y = *(const struct mp_hdr *const *)b;

	if (x->space != y->space)
		return cmp_u64(x->space, y->space);
	if (trace_body(x, symbol)->addr != trace_body(y, symbol)->addr)
		return cmp_u64(trace_body(x, symbol)->addr, trace_body(y, symbol)->addr);
	return x < y ? -1 : x > y; /* inlined frames were written first */
}

static int build(struct replay *p)
{
	struct name_index *ix = &p->names;
	size_t i;

	if (ix->made_for == p->named.nr && ix->stacks)
		return 0;
	names_release(p);
	ix->stacks = calloc(p->named.nr + 1, sizeof(*ix->stacks));
	ix->symbols = calloc(p->named.nr + 1, sizeof(*ix->symbols));
	if (!ix->stacks || !ix->symbols)
		return -ENOMEM;
	for (i = 0; i < p->named.nr; i++) {
		const struct mp_hdr *rec = store_rec(&p->named, i);

		if (rec->type == MP_EV_STACK)
			ix->stacks[ix->nr_stacks++] = rec;
		else
			ix->symbols[ix->nr_symbols++] = rec;
	}
	if (ix->nr_stacks)
		qsort(ix->stacks, ix->nr_stacks, sizeof(*ix->stacks), by_stack);
	if (ix->nr_symbols)
		qsort(ix->symbols, ix->nr_symbols, sizeof(*ix->symbols), by_addr);
	ix->made_for = p->named.nr;
	return 0;
}

void names_release(struct replay *p)
{
	free(p->names.stacks);
	free(p->names.symbols);
	memset(&p->names, 0, sizeof(p->names));
}

/* The first of this id: that with the better frames. */
static const struct mp_hdr *find_stack(const struct name_index *ix, u64 id)
{
	size_t lo = 0, hi = ix->nr_stacks;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (trace_body(ix->stacks[mid], stack)->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < ix->nr_stacks && trace_body(ix->stacks[lo], stack)->id == id ? ix->stacks[lo]
										 : NULL;
}

static size_t first_symbol(const struct name_index *ix, u32 space, u64 addr)
{
	size_t lo = 0, hi = ix->nr_symbols;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct mp_hdr *rec = ix->symbols[mid];

		if (rec->space < space ||
		    (rec->space == space && trace_body(rec, symbol)->addr < addr))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct frame *add_frame(struct replay *p, struct row *row)
{
	struct frame *f;

	if (!(row->nr_frames & (row->nr_frames - 1))) {
		u32 room = row->nr_frames ? row->nr_frames * 2 : 1;

		f = realloc(row->frames, room * sizeof(*f));
		if (!f) {
			p->err = -ENOMEM;
			return NULL;
		}
		row->frames = f;
	}
	f = &row->frames[row->nr_frames++];
	memset(f, 0, sizeof(*f));
	return f;
}

static const struct mp_ev_symbol *symbol_of(const struct name_index *ix, size_t at, u32 space,
					    u64 pc)
{
	const struct mp_ev_symbol *sym;

	if (at >= ix->nr_symbols || ix->symbols[at]->space != space)
		return NULL;
	sym = trace_body(ix->symbols[at], symbol);
	return sym->addr == pc ? sym : NULL;
}

/* Of the code that lay there when the stack was seen. */
static u64 latest_before(const struct name_index *ix, size_t at, u32 space, u64 pc, u64 seq)
{
	const struct mp_ev_symbol *sym;
	u64 since = 0;

	for (; (sym = symbol_of(ix, at, space, pc)); at++)
		if (sym->since <= seq && sym->since > since)
			since = sym->since;
	return since;
}

/* All frames of one pc of a stack, inlined ones first. Returns its enum mp_frame. */
/* What a recording brought into the program is none of its callers. */
static int is_adapter(const char *module)
{
	return module && strstr(module, "/libmemprov-alloc");
}

static u32 add_pc(struct replay *p, const struct name_index *ix, struct row *row,
		  const struct mp_hdr *stack, u64 pc)
{
	u32 space = stack->space;
	size_t at = first_symbol(ix, space, pc);
	u64 since = latest_before(ix, at, space, pc, stack->seq);
	const struct mp_ev_symbol *sym;
	u32 kind = MP_FRAME_UNKNOWN;
	struct frame *f;
	int n = 0;

	for (; (sym = symbol_of(ix, at, space, pc)); at++) {
		if (sym->since != since)
			continue;
		n++;
		kind = sym->frame;
		if (is_adapter(replay_text(p, sym->module)))
			continue;
		f = add_frame(p, row);
		if (!f)
			return kind;
		f->addr = pc;
		f->offset = sym->offset;
		f->line = sym->line;
		f->inlined = sym->inlined != 0;
		f->function = replay_text(p, sym->function);
		f->module = replay_text(p, sym->module);
		f->build_id = replay_text(p, sym->build_id);
		f->file = replay_text(p, sym->file);
	}
	if (!n && (f = add_frame(p, row)))
		f->addr = pc;
	return kind;
}

/* A caller that frame pointers cannot show: a frame without an address, never a neighbour's name.
 */
static void add_gap(struct replay *p, struct row *row)
{
	if (row->nr_frames && !row->frames[row->nr_frames - 1].addr)
		return;
	add_frame(p, row);
}

static int by_fp(const struct mp_ev_stack *ev, u32 i)
{
	return i < 64 ? ev->by_fp0 >> i & 1 : ev->by_fp1 >> (i - 64) & 1;
}

/* Does this C code run Python's functions? */
static int is_eval(const struct replay *p, const struct name_index *ix, u32 space, u64 pc)
{
	size_t at = first_symbol(ix, space, pc);
	const struct mp_ev_symbol *sym;
	const char *name;

	for (; (sym = symbol_of(ix, at, space, pc)); at++) {
		name = sym->inlined ? NULL : replay_text(p, sym->function);
		if (name && !strncmp(name, "_PyEval_EvalFrameDefault", 24))
			return 1;
	}
	return 0;
}

/* Python's frames from *at on, up to the first that the C code at hand was called for. */
static void add_python(struct replay *p, const struct name_index *ix, struct row *row,
		       const struct mp_hdr *stack, u32 *at, int all)
{
	const struct mp_ev_stack *ev = trace_body(stack, stack);
	const u64 *pc = (const u64 *)(ev + 1);
	int entry = 0;
	u32 from;

	for (; *at < ev->n && pc[*at] & MP_PYTHON_FRAME && !entry && !p->err; ++*at) {
		from = row->nr_frames;
		add_pc(p, ix, row, stack, pc[*at]);
		for (; from < row->nr_frames; from++) {
			row->frames[from].runtime = 1;
			row->frames[from].addr = MP_PYTHON_CODE(pc[*at]);
		}
		row->interpreted = 1;
		entry = !all && pc[*at] & MP_PYTHON_ENTRY;
	}
}

static int fill_frames(struct replay *p, const struct name_index *ix, struct row *row)
{
	const struct mp_hdr *rec = row->stack ? find_stack(ix, row->stack) : NULL;
	const struct mp_ev_stack *ev = rec ? trace_body(rec, stack) : NULL;
	const u64 *pc = ev ? (const u64 *)(ev + 1) : NULL;
	u32 i, kind, python = 0;

	while (ev && python < ev->n && !(pc[python] & MP_PYTHON_FRAME))
		python++;
	for (i = 0; ev && i < ev->n && !(pc[i] & MP_PYTHON_FRAME) && !p->err; i++) {
		if (is_eval(p, ix, rec->space, pc[i]))
			add_python(p, ix, row, rec, &python, 0);
		/* A forked child shows its parent's stack, named in the parent's space. */
		kind = add_pc(p, ix, row, rec, pc[i]);
		if (!i && kind == MP_FRAME_TOP && ev->raw == 8 && pc[ev->n])
			kind = add_pc(p, ix, row, rec, pc[ev->n]);
		if (by_fp(ev, i) && (kind == MP_FRAME_TOP || kind == MP_FRAME_HIDDEN))
			add_gap(p, row);
	}
	if (ev && ev->truncated == MP_STACK_CUT)
		add_gap(p, row);
	/* Who runs them is among the callers that could not be found; where all were, nobody does.
	 */
	if (ev && ev->truncated != MP_STACK_WHOLE)
		add_python(p, ix, row, rec, &python, 1);
	if (ev) {
		row->unwound_by = ev->method;
		row->unwound_end = ev->truncated;
	}
	return p->err;
}

/* Build id + offset + kind: the same for every run of a build. Where in the C library a call came
 * from tells nothing about the program: there the name counts. */
static void row_id(struct row *row)
{
	u64 h = hash_text(HASH_SEED, origin_kind_names[row->kind]);
	u32 i;

	h = hash_text(h, row->name);
	for (i = 0; i < row->nr_frames; i++) {
		struct frame *f = &row->frames[i];

		h = hash_text(h, f->build_id ? f->build_id : f->module);
		if (f->function && (frame_is_plumbing(f) || frame_is_made(f) || f->runtime)) {
			h = hash_text(h, f->function);
			h = (h ^ (f->runtime ? f->line : 0)) * 0x100000001b3ull;
			continue;
		}
		h = (h ^ f->offset ^ f->inlined) * 0x100000001b3ull;
	}
	snprintf(row->id, sizeof(row->id), "%016llx", (unsigned long long)h);
}

static int interesting(const struct row *row)
{
	int i;

	for (i = 0; i < COST_MAX; i++)
		if (row->cost[i].known && cost_value(&row->cost[i]))
			return 1;
	return 0;
}

static int is_named_by_kernel(const struct origin *o)
{
	return o->kind == ORIGIN_FILE || o->kind == ORIGIN_SHMEM || o->kind == ORIGIN_MEMCG;
}

/* What each space has of doubtful owners. */
static void sum_doubts(struct replay *p)
{
	struct cost cost[COST_MAX];
	u32 i, c;

	for (i = 0; i < p->nr_spaces; i++)
		memset(p->spaces[i].doubtful, 0, sizeof(p->spaces[i].doubtful));
	for (i = 1; i < p->nr_origins; i++) {
		const struct origin *o = &p->origins[i];
		struct space_state *s = o->unused ? NULL : space_get(p, o->space);

		if (!s || is_named_by_kernel(o))
			continue;
		walk_costs(p, o, cost);
		for (c = 0; c < COST_MAX; c++)
			s->doubtful[c] += cost[c].inferred;
		s->doubtful[COST_GROWN] = s->doubtful[COST_RESIDENT];
	}
}

/* At most, of what one lost fault adds: a huge page, touched in one place; a copy is of one page.
 */
static s64 lost_fault(int column)
{
	switch (column) {
	case COST_FAULTED:
		return 2 << 20;
	case COST_TOUCHED:
	case COST_COW:
		return (s64)MP_PAGE_SIZE;
	default:
		return column == COST_FAULTS;
	}
}

/* A forked space has who touched its pages from its parent, too. */
static int lost_faults(struct replay *p, const struct space_state *s)
{
	while (s && !s->lost[MP_CLASS_PAGE])
		s = s->parent ? space_get(p, s->parent) : NULL;
	return s != NULL;
}

/* Pages that the kernel filled have no fault, and a mapping that was lost from birth to end may
 * have been of any size: nothing short of the address space bounds what was touched of it. */
#define ADDRESS_SPACE (1ll << 47)

/* After a loss of calls each doubtful byte of the space may be this row's, after a loss of faults
 * each that has no faulting stack; and what was lost itself. */
static void bound_losses(struct replay *p, struct row *row, const struct origin *o)
{
	const struct space_state *s = space_get(p, o->space);
	int calls = lost_calls(p, o->space), c;

	if (!s || is_named_by_kernel(o) || !(calls || lost_faults(p, s)))
		return;
	for (c = 0; c < COST_MAX; c++) {
		struct cost *cost = &row->cost[c];
		int stock = cost_columns[c].kind == COST_STOCK || c == COST_GROWN;

		if ((calls || (stock && o->kind == ORIGIN_FAULT)) && s->doubtful[c] > cost->hi)
			cost->hi = s->doubtful[c];
		if (calls && c == COST_TOUCHED)
			cost->hi = ADDRESS_SPACE;
		if (!stock)
			cost->hi += (s64)(s->lost[MP_CLASS_PAGE] + s->unplaced) * lost_fault(c);
		cost->open |= cost->hi > cost_value(cost);
	}
}

static void bound(struct row *row, const struct origin *o)
{
	s64 reserved = cost_value(&row->cost[COST_RESERVED]);
	int i;

	/* What is unmapped now may have been touched before. */
	if (reserved < (s64)o->mapped)
		reserved = (s64)o->mapped;
	for (i = 0; i < COST_MAX; i++) {
		struct cost *c = &row->cost[i];

		c->hi = cost_value(c);
		if (i == COST_GROWN)
			c->hi += (s64)o->moved;
		if (i == COST_UNIQUE)
			c->hi += (s64)o->elsewhere;
		if (i == COST_TOUCHED && c->known && reserved > c->hi)
			c->hi = reserved;
	}
}

/* Functions of allocators, as they are called in a C library or in one of their own. */
static int is_allocators(const struct frame *f)
{
	static const char *const functions[] = {
		"malloc",    "calloc",	      "realloc",	"reallocarray",
		"memalign",  "aligned_alloc", "posix_memalign", "valloc",
		"pvalloc",   "operator new",  "_int_malloc",	"_int_memalign",
		"sysmalloc", "new_heap",      "arena_get2",	"tcache_init",
	};
	static const char *const files[] = {"/libjemalloc", "/libtcmalloc", "/libmimalloc"};
	const char *name = f->function;
	size_t i;

	for (i = 0; f->module && i < sizeof(files) / sizeof(files[0]); i++)
		if (strstr(f->module, files[i]))
			return 1;
	if (name && !strncmp(name, "__libc_", 7))
		name += 7;
	for (i = 0; name && i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strncmp(name, functions[i], strlen(functions[i])))
			return 1;
	return 0;
}

int names_is_allocators(struct replay *p, const struct origin *o)
{
	struct row row = {.stack = o->stack, .space = o->space};
	u32 i;
	int is = 0;

	if (!o->stack || build(p))
		return 0;
	fill_frames(p, &p->names, &row);
	/* The program's own come behind those between it and the kernel. */
	for (i = 0; i < row.nr_frames && !is && frame_is_plumbing(&row.frames[i]); i++)
		is = is_allocators(&row.frames[i]);
	free(row.frames);
	return is;
}

static int by_name(const struct row *a, const struct row *b)
{
	return a->kind != b->kind ? (int)a->kind - (int)b->kind : strcmp(a->name, b->name);
}

/* Objects of one name side by side, in the order of their making. */
static int by_object(const void *a, const void *b)
{
	const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;
	int c = by_name(x, y);

	if (!c)
		c = cmp_u64(x->dev, y->dev);
	return c ? c : cmp_u64(x->ino, y->ino);
}

/* all is in the order of by_object. A name of one object stays as it is: 0. */
static void count_twins(struct row **all, size_t n)
{
	size_t i;
	int alone = 0;

	for (i = 0; i < n; i++)
		all[i]->twin = !i || by_name(all[i - 1], all[i])
				       ? 1
				       : all[i - 1]->twin + !!by_object(&all[i - 1], &all[i]);
	for (i = n; i-- > 0;) {
		if (i + 1 == n || by_name(all[i], all[i + 1]))
			alone = all[i]->twin == 1;
		if (alone)
			all[i]->twin = 0;
	}
}

/* "NAME #2": the second object of this name. */
static int number_twins(struct report *r, struct row **all, size_t n)
{
	size_t i, len = 0;
	FILE *f = open_memstream(&r->names, &len);

	if (!f)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (all[i]->twin)
			fprintf(f, "%s #%u%c", all[i]->name, all[i]->twin, 0);
	if (fclose(f))
		return -ENOMEM;
	/* The text has moved while it grew: only now it has places. */
	for (i = 0, len = 0; i < n; i++)
		if (all[i]->twin) {
			all[i]->name = r->names + len;
			len += strlen(all[i]->name) + 1;
		}
	return 0;
}

static int name_objects(struct report *r)
{
	struct row **all = malloc((r->nr_rows + 1) * sizeof(*all));
	size_t i, n = 0;
	int err;

	if (!all)
		return -ENOMEM;
	for (i = 0; i < r->nr_rows; i++)
		if ((r->rows[i].kind == ORIGIN_FILE || r->rows[i].kind == ORIGIN_SHMEM) &&
		    r->rows[i].name)
			all[n++] = &r->rows[i];
	if (n)
		qsort(all, n, sizeof(*all), by_object);
	count_twins(all, n);
	err = number_twins(r, all, n);
	free(all);
	return err;
}

int names_attach(struct replay *p, struct report *r)
{
	u32 i, j;
	int err = build(p);

	if (p->nr_lost)
		sum_doubts(p);
	r->rows = calloc(p->nr_origins + 1, sizeof(*r->rows));
	if (!r->rows)
		err = -ENOMEM;
	for (i = 1; i < p->nr_origins && !err; i++) {
		struct origin *o = &p->origins[i];
		struct row *row = &r->rows[r->nr_rows];

		if (o->unused)
			continue;
		row->kind = o->kind;
		row->name = o->name ? replay_text(p, o->name) : o->class_name;
		row->evidence = o->name ? NULL : shape_evidence(o->class_name);
		row->pid = o->pid;
		row->space = o->space;
		row->comm = o->comm;
		row->stack = o->stack;
		row->ino = o->ino;
		row->dev = o->dev;
		row->multi = o->multi;
		row->since = o->since;
		row->generations = o->generations;
		row->resource = o->resource ? replay_text(p, o->resource) : NULL;
		row->misnamed = lost_calls(p, o->space) || r->losses[MP_LOSS_RESOURCE].count;
		walk_costs(p, o, row->cost);
		if (!interesting(row)) {
			memset(row, 0, sizeof(*row));
			continue;
		}
		r->nr_rows++;
		err = fill_frames(p, &p->names, row);
		bound(row, o);
		access_bound(p, o, row->cost);
		sample_bound(p, o, row->cost);
		memsample_bound(p, o, row->cost);
		bound_losses(p, row, o);
		after_bound(p, o, row->cost);
		r->stacks += row->nr_frames != 0;
		r->stacks_deep += row->unwound_end == MP_STACK_DEEP;
		r->stacks_cut += row->unwound_end == MP_STACK_CUT;
		r->frames += row->nr_frames;
		for (j = 0; j < row->nr_frames; j++)
			r->unknown_frames += !row->frames[j].function;
	}
	if (!err)
		err = name_objects(r);
	for (i = 0; i < r->nr_rows; i++)
		row_id(&r->rows[i]);
	return err;
}
