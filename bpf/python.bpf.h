/* SPDX-License-Identifier: GPL-2.0-only
 * The Python frames of a thread, read from its interpreter's own state. Whatever that holds,
 * reading it is bounded: state that is not what it must be gives fewer frames. */
#ifndef MP_PYTHON_BPF_H
#define MP_PYTHON_BPF_H

#include "follow.bpf.h"
#include "shared/python.h"

#define MAX_INTERPRETERS 8
#define MAX_THREADS	 128

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MP_MAX_TARGETS);
	__type(key, u32);
	__type(value, struct mp_python);
} pythons SEC(".maps");

u32 mp_pythons = 0; /* how many spaces have an entry, or had */

struct code_key {
	u64 code;
	u32 space, firstlineno;
};

/* Code objects that are in the ring already. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MP_MAX_CODES);
	__type(key, struct code_key);
	__type(value, u8);
} known_codes SEC(".maps");

struct python_walk {
	struct mp_python o;
	u64 thread, id;
	u64 frame[16]; /* MP_PYTHON_FRAME_SIZE bytes of one; a power of two for the verifier */
	u64 hash;
	u32 n, space;
	u64 frames[MP_PYTHON_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct python_walk);
} python_scratch SEC(".maps");

static __always_inline u64 user_word(u64 addr)
{
	u64 v = 0;

	return bpf_probe_read_user(&v, sizeof(v), (void *)addr) ? 0 : v;
}

/* A thread of Python knows the thread that it is by where its thread-local storage lies. */
static __always_inline int is_thread(const struct python_walk *p, u64 thread, u64 interp)
{
	return thread && user_word(thread + p->o.thread_id) == p->id &&
	       (!interp || user_word(thread + p->o.thread_interp) == interp);
}

__noinline u64 thread_of(struct python_walk *p, u64 interp)
{
	u64 thread;
	u32 i;

	if (!p)
		return 0;
	thread = user_word(interp + p->o.threads);
	for (i = 0; i < MAX_THREADS && thread; i++) {
		if (is_thread(p, thread, interp))
			return thread;
		thread = user_word(thread + p->o.thread_next);
	}
	return 0;
}

__noinline u64 find_thread(struct python_walk *p)
{
	u64 interp, thread;
	u32 i;

	if (!p)
		return 0;
	interp = user_word(p->o.runtime + p->o.interpreters);
	for (i = 0; i < MAX_INTERPRETERS && interp; i++) {
		thread = thread_of(p, interp);
		if (thread)
			return thread;
		interp = user_word(interp + p->o.next);
	}
	return 0;
}

#define FRAME_WORD(p, off) ((p)->frame[(off) / 8 & 15])
#define FRAME_BYTE(p, off) ((u8)(FRAME_WORD(p, off) >> ((off) % 8 * 8)))

#define OWNED_BY_C	   3 /* no Python frame: where C code calls into Python */

/* Adds the frame in p->frame. 0: it is none, or the last that can be told. */
static __always_inline int add_python_frame(struct python_walk *p)
{
	u64 code = FRAME_WORD(p, p->o.code), instr = FRAME_WORD(p, p->o.instr), units;
	u32 n = p->n;

	if (!p->o.has_flags && FRAME_BYTE(p, p->o.owner) == OWNED_BY_C) {
		if (n && n <= MP_PYTHON_DEPTH)
			p->frames[(n - 1) & (MP_PYTHON_DEPTH - 1)] |= MP_PYTHON_ENTRY;
		return 1;
	}
	/* One that is being made has an instruction in front of the first. */
	if (!code || code & 15 || code >> 47 || instr + 2 < code + p->o.bytecode ||
	    n >= MP_PYTHON_DEPTH)
		return 0;
	units = instr < code + p->o.bytecode ? 0 : (instr - code - p->o.bytecode) / 2;
	if (units > MP_PYTHON_UNITS)
		units = MP_PYTHON_UNITS;
	p->frames[n & (MP_PYTHON_DEPTH - 1)] =
		MP_PYTHON_FRAME | code >> 4 << 19 | units |
		(p->o.has_flags && FRAME_BYTE(p, p->o.flags) ? MP_PYTHON_ENTRY : 0);
	p->n = n + 1;
	return 1;
}

__noinline int walk_python(struct python_walk *p)
{
	u64 frame;
	u32 i;

	if (!p)
		return 0;
	frame = user_word(p->thread + p->o.thread_frame);
	if (frame && p->o.is_cframe)
		frame = user_word(frame + p->o.cframe_frame);
	for (i = 0; i < 2 * MP_PYTHON_DEPTH && frame; i++) {
		if (bpf_probe_read_user(p->frame, MP_PYTHON_FRAME_SIZE, (void *)frame) ||
		    !add_python_frame(p))
			break;
		frame = FRAME_WORD(p, p->o.previous);
	}
	for (i = 0; i < MP_PYTHON_DEPTH && i < p->n; i++)
		p->hash = (p->hash ^ p->frames[i]) * 0x9e3779b97f4a7c15ull;
	p->hash ^= p->hash >> 29;
	return 0;
}

/* A thread that is none of Python's is asked for less and less often: it may become one. */
#define PYTHON_PAUSE_NS	    20000
#define PYTHON_PAUSE_MAX_NS 10000000

/* The Python frames of the current thread, NULL: it has none. */
static __always_inline struct python_walk *python_of(struct thread *t)
{
	struct python_walk *p;
	u32 zero = 0, space = t->space;
	struct mp_python *o;
	u64 now;

	if (!mp_pythons)
		return NULL;
	o = bpf_map_lookup_elem(&pythons, &space);
	p = bpf_map_lookup_elem(&python_scratch, &zero);
	if (!o || !p)
		return NULL;
	p->o = *o;
	p->space = space;
	p->n = 0;
	p->hash = 0;
	p->id = bpf_get_current_task_btf()->thread.fsbase;
	if (!is_thread(p, t->python, 0)) {
		now = bpf_ktime_get_ns();
		t->python = 0;
		if (now < t->python_again)
			return NULL;
		t->python = find_thread(p);
		t->python_pause = t->python ? PYTHON_PAUSE_NS
				  : t->python_pause < PYTHON_PAUSE_MAX_NS
					  ? t->python_pause * 2 + PYTHON_PAUSE_NS
					  : PYTHON_PAUSE_MAX_NS;
		t->python_again = now + t->python_pause;
		if (!t->python)
			return NULL;
	}
	p->thread = t->python;
	walk_python(p);
	return p->n ? p : NULL;
}

/* ---- code objects ---- */

struct code_buf {
	struct mp_hdr hdr;
	struct mp_python_code code;
};

static __always_inline void read_text(struct mp_python_text *to, const struct mp_python *o,
				      u64 text)
{
	u64 chars;

	to->len = (u32)user_word(text + 16);
	to->state = (u32)user_word(text + 32);
	chars = text + (to->state & 64 ? o->ascii : o->compact);
	/* It may end right before what is not mapped. */
	if (bpf_probe_read_user(to->text, sizeof(to->text), (void *)chars) &&
	    (to->len > 127 || bpf_probe_read_user(to->text, to->len & 127, (void *)chars)))
		to->len = 0;
}

__noinline int send_code(struct python_walk *p, u64 code, u32 firstlineno)
{
	struct code_buf *r;
	u64 lines;

	if (!p)
		return 0;
	/* A name is worth less than an event: it takes no room that those may need. */
	if (bpf_ringbuf_query(&detail_ring, BPF_RB_AVAIL_DATA) > 2ull * cfg_detail_wake)
		return 0;
	r = bpf_ringbuf_reserve(&detail_ring, sizeof(*r), 0);
	if (!r)
		return 0;
	fill_hdr(&r->hdr, MP_RING_CODE, sizeof(*r), p->space);
	r->code.code = code;
	r->code.firstlineno = firstlineno;
	read_text(&r->code.name, &p->o, user_word(code + p->o.qualname));
	read_text(&r->code.file, &p->o, user_word(code + p->o.filename));
	lines = user_word(code + p->o.linetable);
	r->code.lines_at = lines + 32;
	r->code.lines_len = (u32)user_word(lines + 16);
	if (bpf_probe_read_user(r->code.lines, sizeof(r->code.lines), (void *)(lines + 32)) &&
	    (r->code.lines_len > 511 ||
	     bpf_probe_read_user(r->code.lines, r->code.lines_len & 511, (void *)(lines + 32))))
		r->code.lines_len = 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 1;
}

/* A frame's, when its name is not in the ring yet. The verifier looks into it once: as a part of
 * the loop Linux 6.1 would walk it anew for each frame, and give up. */
__noinline int send_frame(struct python_walk *p, u32 i)
{
	struct code_key key = {};
	u8 one = 1;

	if (!p || i >= MP_PYTHON_DEPTH)
		return 0;
	key.space = p->space;
	key.code = MP_PYTHON_CODE(p->frames[i]);
	if (p->o.code_type && user_word(key.code + 8) != p->o.code_type)
		return 0;
	key.firstlineno = (u32)user_word(key.code + p->o.firstlineno);
	if (bpf_map_lookup_elem(&known_codes, &key) || !send_code(p, key.code, key.firstlineno))
		return 0;
	return !bpf_map_update_elem(&known_codes, &key, &one, BPF_ANY);
}

/* Those of the stack, before the stack is. */
__noinline int send_codes(struct python_walk *p)
{
	u32 i;

	if (!p)
		return 0;
	for (i = 0; i < MP_PYTHON_DEPTH && i < p->n; i++)
		send_frame(p, i);
	return 1;
}

/* The child runs the interpreter that its parent runs. */
static __always_inline void share_python(u32 parent, u32 child)
{
	struct mp_python *of = mp_pythons ? bpf_map_lookup_elem(&pythons, &parent) : NULL;

	if (of)
		bpf_map_update_elem(&pythons, &child, of, BPF_ANY);
}

#endif
