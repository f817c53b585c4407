/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/shared/python.h"
#include "lib/capture/clock.h"
#include "lib/capture/pycode.h"

#define WANTED_MAX 65536u
#define LINES_MAX  65536u

struct code {
	u64 addr; /* 0: free */
	u32 space, firstlineno;
	u32 name, file; /* string ids */
	u64 since; /* sequence of a later one at this address, 0: it is the first */
	u32 lines_len;
	u8 *lines;
};

struct place {
	u64 word, seq; /* word 0: free */
	u32 space;
};

struct pycode {
	struct trace_writer *w;
	int (*read)(void *ctx, u32 space, u64 addr, void *to, size_t len);
	void *read_ctx;
	struct code *codes; /* open addressing */
	u32 nr_codes, cap_codes;
	u64 *named; /* open addressing: hashes of places that have their SYMBOL */
	u32 nr_named, cap_named;
	struct place *wanted; /* of code objects whose names are on their way */
	u32 nr_wanted;
};

static u64 mix(u64 a, u64 b, u64 c)
{
	u64 h = (a ^ b * 0x9e3779b97f4a7c15ull ^ c * 0xbf58476d1ce4e5b9ull) * 0x94d049bb133111ebull;

	h ^= h >> 31;
	return h ? h : 1;
}

/* ---- lines ---- */

/* Six bits a byte, the lowest first; bit 6: more follow. */
static u32 get_varint(const u8 **at, const u8 *end)
{
	u32 v = 0, shift;

	for (shift = 0; *at < end && shift < 30; shift += 6) {
		u8 b = *(*at)++;

		v |= (u32)(b & 63) << shift;
		if (!(b & 64))
			break;
	}
	return v;
}

static s32 get_signed(const u8 **at, const u8 *end)
{
	u32 v = get_varint(at, end);

	return v & 1 ? -(s32)(v >> 1) : (s32)(v >> 1);
}

u32 pycode_line(const u8 *table, u32 len, u32 firstlineno, u32 unit)
{
	const u8 *at = table, *end = table + len;
	s64 line = firstlineno;
	u32 first = 0;

	while (at < end && *at & 0x80) {
		u32 kind = *at >> 3 & 15, units = (*at & 7) + 1u;

		at++;
		if (kind == 13 || kind == 14)
			line += get_signed(&at, end);
		else if (kind >= 10 && kind <= 12)
			line += kind - 10;
		if (unit < first + units)
			return kind == 15 || line <= 0 || line > 0x7fffffff ? 0 : (u32)line;
		first += units;
		/* What else it says; only the first byte of an entry has bit 7. */
		while (at < end && !(*at & 0x80))
			at++;
	}
	return 0;
}

/* ---- texts ---- */

static size_t put_utf8(char *to, u32 c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 7));
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* A text of Python has characters of one, two or four bytes. What was not all sent ends in dots. */
static s64 text_id(struct pycode *p, const struct mp_python_text *t)
{
	u32 width = t->state >> 2 & 7, room, i, c;
	char text[4 * MP_PYTHON_PATH + 4];
	size_t n = 0;

	if (!t->len || (width != 1 && width != 2 && width != 4))
		return 0;
	room = (u32)sizeof(t->text) / width;
	for (i = 0; i < t->len && i < room; i++) {
		c = 0;
		memcpy(&c, t->text + i * width, width);
		n += put_utf8(text + n, c);
	}
	if (i < t->len)
		n += (size_t)(stpcpy(text + n, "...") - (text + n));
	text[n] = 0;
	return trace_string(p->w, text);
}

/* ---- code objects ---- */

static struct code *code_slot(struct code *all, u32 cap, u32 space, u64 addr)
{
	u64 i = mix(space, addr, 0);

	while (all[i & (cap - 1)].addr &&
	       (all[i & (cap - 1)].addr != addr || all[i & (cap - 1)].space != space))
		i++;
	return &all[i & (cap - 1)];
}

static int grow_codes(struct pycode *p)
{
	u32 cap = p->cap_codes ? p->cap_codes * 2 : 1024, i;
	struct code *all = calloc(cap, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (i = 0; i < p->cap_codes; i++)
		if (p->codes[i].addr)
			*code_slot(all, cap, p->codes[i].space, p->codes[i].addr) = p->codes[i];
	free(p->codes);
	p->codes = all;
	p->cap_codes = cap;
	return 0;
}

/* The rest of a long table is read from the process: it is the same one if it begins as it did. */
static int set_lines(struct pycode *p, struct code *c, const struct mp_python_code *said)
{
	u32 sent = said->lines_len < MP_PYTHON_LINES ? said->lines_len : MP_PYTHON_LINES;
	u32 len = said->lines_len < LINES_MAX ? said->lines_len : sent;
	u8 *lines = malloc(len + 1);

	if (!lines)
		return -ENOMEM;
	if (len > sent && (p->read(p->read_ctx, c->space, said->lines_at, lines, len) ||
			   memcmp(lines, said->lines, sent)))
		len = sent;
	memcpy(lines, said->lines, sent);
	free(c->lines);
	c->lines = lines;
	c->lines_len = len;
	return 0;
}

static int write_symbol(struct pycode *p, const struct code *c, const struct place *at);

/* Those that waited for it. */
static int name_wanted(struct pycode *p, const struct code *c)
{
	u32 i, kept = 0;
	int err = 0;

	for (i = 0; i < p->nr_wanted; i++) {
		struct place at = p->wanted[i];

		if (err || at.space != c->space || MP_PYTHON_CODE(at.word) != c->addr)
			p->wanted[kept++] = at;
		else
			err = write_symbol(p, c, &at);
	}
	p->nr_wanted = kept;
	return err;
}

static int on_code(struct pycode *p, const struct mp_hdr *rec)
{
	const struct mp_python_code *said = (const void *)(rec + 1);
	s64 name = text_id(p, &said->name), file = text_id(p, &said->file);
	struct code *c;
	int err = 0;

	if (name < 0 || file < 0)
		return name < 0 ? (int)name : (int)file;
	if (!said->code)
		return 0;
	if (p->nr_codes * 2 >= p->cap_codes && grow_codes(p))
		return -ENOMEM;
	c = code_slot(p->codes, p->cap_codes, rec->space, said->code);
	p->nr_codes += !c->addr;
	/* Another one took the place of one that has gone. */
	if (c->addr &&
	    (c->name != (u32)name || c->file != (u32)file || c->firstlineno != said->firstlineno))
		c->since = rec->seq;
	c->addr = said->code;
	c->space = rec->space;
	c->firstlineno = said->firstlineno;
	c->name = (u32)name;
	c->file = (u32)file;
	err = set_lines(p, c, said);
	return err ? err : name_wanted(p, c);
}

/* ---- places ---- */

/* 1: it was not there; 0; or -ENOMEM. */
static int add_named(struct pycode *p, u64 hash)
{
	u32 cap = p->cap_named ? p->cap_named * 2 : 4096, i;
	u64 *all, at;

	if (p->nr_named * 2 >= p->cap_named) {
		all = calloc(cap, sizeof(*all));
		if (!all)
			return -ENOMEM;
		for (i = 0; i < p->cap_named; i++) {
			for (at = p->named[i]; p->named[i] && all[at & (cap - 1)]; at++)
				;
			if (p->named[i])
				all[at & (cap - 1)] = p->named[i];
		}
		free(p->named);
		p->named = all;
		p->cap_named = cap;
	}
	for (at = hash; p->named[at & (p->cap_named - 1)]; at++)
		if (p->named[at & (p->cap_named - 1)] == hash)
			return 0;
	p->named[at & (p->cap_named - 1)] = hash;
	p->nr_named++;
	return 1;
}

static int write_symbol(struct pycode *p, const struct code *c, const struct place *at)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_symbol ev;
	} rec = {
		.hdr = {.type = MP_EV_SYMBOL,
			.size = sizeof(rec),
			.space = at->space,
			.seq = at->seq,
			.time_ns = now_ns()},
		.ev = {.addr = at->word,
		       .function = c->name,
		       .module = c->file,
		       .file = c->file,
		       .since = c->since},
	};
	int is_new = add_named(p, mix(at->space, at->word, c->since));

	if (is_new <= 0)
		return is_new;
	rec.ev.line = pycode_line(c->lines, c->lines_len, c->firstlineno,
				  (u32)(at->word & MP_PYTHON_UNITS));
	return trace_write(p->w, &rec.hdr);
}

static int want(struct pycode *p, const struct place *at)
{
	struct place *all;

	if (p->nr_wanted == WANTED_MAX)
		return 0;
	all = reallocarray(p->wanted, p->nr_wanted + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	p->wanted = all;
	all[p->nr_wanted++] = *at;
	return 0;
}

static int on_stack(struct pycode *p, const struct mp_hdr *rec)
{
	const struct mp_ev_stack *ev = trace_body(rec, stack);
	const u64 *pc = (const u64 *)(ev + 1);
	const struct code *c;
	int err = 0;
	u32 i;

	for (i = 0; i < ev->n && !err; i++) {
		const struct place at = {.word = pc[i], .space = rec->space, .seq = rec->seq};

		if (!(at.word & MP_PYTHON_FRAME))
			continue;
		c = p->cap_codes
			    ? code_slot(p->codes, p->cap_codes, at.space, MP_PYTHON_CODE(at.word))
			    : NULL;
		err = c && c->addr ? write_symbol(p, c, &at) : want(p, &at);
	}
	return err;
}

int pycode_feed(struct pycode *p, const struct mp_hdr *rec)
{
	if (rec->type == MP_EV_STACK)
		return on_stack(p, rec);
	return rec->type == MP_RING_CODE ? on_code(p, rec) : 0;
}

int pycode_new(struct trace_writer *w,
	       int (*read)(void *ctx, u32 space, u64 addr, void *to, size_t len), void *ctx,
	       struct pycode **ret_p)
{
	struct pycode *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->w = w;
	p->read = read;
	p->read_ctx = ctx;
	*ret_p = p;
	return 0;
}

void pycode_free(struct pycode **p)
{
	u32 i;

	if (!*p)
		return;
	for (i = 0; i < (*p)->cap_codes; i++)
		free((*p)->codes[i].lines);
	free((*p)->codes);
	free((*p)->named);
	free((*p)->wanted);
	free(*p);
	*p = NULL;
}
