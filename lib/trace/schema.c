/* SPDX-License-Identifier: GPL-2.0-only
 * The event table, expanded from event.def: as trace_event_of() for the dump, and as the content
 * of the schema block in front of every file. The reader decodes by the schema of the file, so a
 * file of a later minor version stays readable; here is also the check that such a schema still
 * begins with the fields this program was built with. */
#include <errno.h>
#include <string.h>
#include "lib/trace/format.h"

/* clang-format off */
#define MP_EVENT(NAME, num, name, doc) static const struct trace_field fields_##name[] = {
#define MP_FIELD(ev, type, field, unit, doc) \
	{ #field, #unit, doc, offsetof(struct mp_ev_##ev, field), sizeof(type) },
#define MP_END(ev) };
#include "bpf/shared/event.def"
#undef MP_EVENT
#undef MP_FIELD
#undef MP_END

static const struct trace_event events[MP_EV_MAX] = {
#define MP_EVENT(NAME, num, name, doc) \
	[num] = { #name, doc, fields_##name, sizeof(fields_##name) / sizeof(fields_##name[0]), \
		  sizeof(struct mp_ev_##name) },
#define MP_FIELD(ev, type, field, unit, doc)
#define MP_END(ev)
#include "bpf/shared/event.def"
#undef MP_EVENT
#undef MP_FIELD
#undef MP_END
};
/* clang-format on */

const struct trace_event *trace_event_of(u16 type)
{
	return type < MP_EV_MAX && events[type].name ? &events[type] : NULL;
}

static u8 tail_of(unsigned int type)
{
	if (type == MP_EV_STRING)
		return TF_TAIL_STRING;
	return type == MP_EV_STACK ? TF_TAIL_STACK : TF_TAIL_NONE;
}

static bool has_tid(const struct trace_event *e)
{
	unsigned int i;

	for (i = 0; i < e->nr_fields; i++)
		if (!strcmp(e->fields[i].name, "tid"))
			return true;
	return false;
}

/* Ids of stacks and threads repeat but are not near each other: a difference of two is noise. So is
 * one of two durations. Addresses go on where the same thread was. */
static u8 coding_of(const struct trace_event *e, const struct trace_field *f)
{
	if (!strcmp(f->name, "stack") || !strcmp(f->name, "tid"))
		return TF_DICT;
	if (!strcmp(f->name, "stall"))
		return TF_PLAIN;
	return has_tid(e) && f->size == 8 ? TF_DELTA_TID : TF_DELTA;
}

static bool put(u8 **p, const u8 *end, const void *src, size_t n)
{
	if ((size_t)(end - *p) < n)
		return false;
	memcpy(*p, src, n);
	*p += n;
	return true;
}

static bool put_name(u8 **p, const u8 *end, const char *s)
{
	u8 n = strlen(s);

	return put(p, end, &n, 1) && put(p, end, s, n);
}

static bool put_event(u8 **p, const u8 *end, unsigned int type, const struct trace_event *e)
{
	u8 head[3] = {type, tail_of(type), e->nr_fields};
	unsigned int i;

	if (!put(p, end, head, sizeof(head)) || !put(p, end, &e->size, sizeof(e->size)) ||
	    !put_name(p, end, e->name))
		return false;
	for (i = 0; i < e->nr_fields; i++) {
		const struct trace_field *f = &e->fields[i];
		u8 fh[2] = {f->size, coding_of(e, f)};

		if (!put(p, end, fh, sizeof(fh)) || !put_name(p, end, f->name) ||
		    !put_name(p, end, f->unit))
			return false;
	}
	return true;
}

int tf_schema_encode(u8 *buf, size_t cap)
{
	u8 *p = buf;
	u16 nr = 0;
	unsigned int i;

	for (i = 0; i < MP_EV_MAX; i++)
		nr += !!events[i].name;
	if (!put(&p, buf + cap, &nr, sizeof(nr)))
		return -ENOSPC;
	for (i = 0; i < MP_EV_MAX; i++)
		if (events[i].name && !put_event(&p, buf + cap, i, &events[i]))
			return -ENOSPC;
	return p - buf;
}

static bool get(struct tf_cursor *c, void *dst, size_t n)
{
	if ((size_t)(c->end - c->p) < n)
		return false;
	memcpy(dst, c->p, n);
	c->p += n;
	return true;
}

/* A name; *ret_tid: it is "tid". */
static bool get_name(struct tf_cursor *c, bool *ret_tid)
{
	u8 n;

	if (!get(c, &n, 1) || n == 0 || c->end - c->p < n)
		return false;
	if (ret_tid)
		*ret_tid = n == 3 && !memcmp(c->p, "tid", 3);
	c->p += n;
	return true;
}

static bool get_field(struct tf_cursor *c, struct tf_type *t, u8 i)
{
	u8 size, coding;
	bool tid;

	if (!get(c, &size, 1) || !get(c, &coding, 1) || !get_name(c, &tid) || !get_name(c, NULL))
		return false;
	if ((size != 1 && size != 2 && size != 4 && size != 8) || coding >= TF_CODING_MAX)
		return false;
	t->size[i] = size;
	t->coding[i] = coding;
	if (tid && t->key == TF_NO_KEY)
		t->key = i;
	return true;
}

/* What a thread's values follow must itself not follow a thread's. */
static bool key_usable(const struct tf_type *t)
{
	unsigned int i;

	for (i = 0; i < t->nr_fields; i++)
		if (t->coding[i] == TF_DELTA_TID &&
		    (t->key == TF_NO_KEY || t->coding[t->key] == TF_DELTA_TID))
			return false;
	return true;
}

/* Of the types with a tail those fields that tell its length were there from the start. */
static unsigned int fields_at_least(unsigned int type)
{
	return type == MP_EV_STACK ? 5 : type == MP_EV_STRING ? 2 : 1;
}

/* Fields are only ever appended: what both know must be in front, unchanged. */
static bool compatible(unsigned int type, struct tf_type *t)
{
	const struct trace_event *e = trace_event_of(type);
	unsigned int i;

	if ((t->tail == TF_TAIL_STRING && type != MP_EV_STRING) ||
	    (t->tail == TF_TAIL_STACK && type != MP_EV_STACK))
		return false;
	if (!e)
		return true;
	if (t->nr_fields < fields_at_least(type) || (tail_of(type) && t->tail != tail_of(type)))
		return false;
	t->known = t->nr_fields < e->nr_fields ? t->nr_fields : (u8)e->nr_fields;
	for (i = 0; i < t->known; i++)
		if (t->size[i] != e->fields[i].size)
			return false;
	return true;
}

static bool get_event(struct tf_cursor *c, struct tf_schema *s)
{
	struct tf_type *t;
	u8 head[3];
	u16 size;
	unsigned int i, sum = 0;

	if (!get(c, head, sizeof(head)) || !get(c, &size, sizeof(size)) || !get_name(c, NULL))
		return false;
	t = &s->type[head[0]];
	if (head[0] == 0 || t->present || head[2] > TF_FIELDS_MAX)
		return false;
	t->present = true;
	t->tail = head[1];
	t->nr_fields = head[2];
	t->key = TF_NO_KEY;
	for (i = 0; i < t->nr_fields; i++) {
		if (!get_field(c, t, (u8)i))
			return false;
		sum += t->size[i];
	}
	return sum == size && size % 8 == 0 && key_usable(t) && compatible(head[0], t);
}

int tf_schema_decode(const u8 *buf, size_t len, struct tf_schema *s)
{
	struct tf_cursor c = {buf, buf + len};
	u16 nr;

	memset(s, 0, sizeof(*s));
	if (!get(&c, &nr, sizeof(nr)))
		return -EBADMSG;
	while (nr--)
		if (!get_event(&c, s))
			return -EBADMSG;
	return c.p == c.end ? 0 : -EBADMSG;
}
