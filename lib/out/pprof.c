/* SPDX-License-Identifier: GPL-2.0-only
 * A pprof profile. Every additive column is a sample type; a row is one sample for each grade it
 * has a part of, so that a value is the sum of its samples, as it is of its parts, and
 * -tagfocus=grade=exact shows what is exact. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "lib/out/intern.h"
#include "lib/out/out.h"
#include "lib/text/text.h"
#include "profile.pb-c.h"

struct builder {
	Pprof__Profile *p;
	struct intern text, functions, mappings, locations;
	int columns[COST_MAX], nr_columns;
	int err;
};

/* ---- pieces ---- */

static void *take(struct builder *b, size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		b->err = -ENOMEM;
	return p;
}

/* array is the address of a pointer to n elements of size; returns the place of one more, or NULL.
 * Room doubles. */
static void *more(struct builder *b, void *array, size_t n, size_t size)
{
	char *a;

	memcpy(&a, array, sizeof(a));
	if (!(n & (n - 1))) {
		a = realloc(a, (n ? n * 2 : 1) * size);
		if (!a) {
			b->err = -ENOMEM;
			return NULL;
		}
		memcpy(array, &a, sizeof(a));
	}
	return a + n * size;
}

#define ADD(b, list, message)                                                                  \
	do {                                                                                   \
		void *m_ = (message);                                                          \
		void **at_ = m_ ? more(b, &(b)->p->list, (b)->p->n_##list, sizeof(m_)) : NULL; \
		if (at_) {                                                                     \
			*at_ = m_;                                                             \
			(b)->p->n_##list++;                                                    \
		} else {                                                                       \
			free(m_);                                                              \
		}                                                                              \
	} while (0)

static s64 text(struct builder *b, const char *s)
{
	char *clean = text_clean(s ? s : "");
	s64 n = clean ? intern_text(&b->text, clean) : -ENOMEM;

	free(clean);
	if (n < 0)
		b->err = (int)n;
	return n < 0 ? 0 : n;
}

static Pprof__ValueType *value_type(struct builder *b, int column)
{
	const struct cost_column *c = &cost_columns[column];
	Pprof__ValueType *t = take(b, sizeof(*t));

	if (!t)
		return NULL;
	pprof__value_type__init(t);
	t->type = text(b, c->name);
	t->unit = text(b, !strcmp(c->unit, "B")	   ? "bytes"
			  : !strcmp(c->unit, "ns") ? "nanoseconds"
						   : "count");
	return t;
}

/* ---- stacks ---- */

static u64 function_id(struct builder *b, const char *name, const char *file)
{
	s64 key[2] = {text(b, name), text(b, file)};
	u32 before = b->functions.n;
	s64 id = intern(&b->functions, key, sizeof(key));
	Pprof__Function *f;

	if (id >= 0 && b->functions.n == before)
		return (u64)id + 1;
	f = id < 0 ? NULL : take(b, sizeof(*f));
	if (!f) {
		b->err = -ENOMEM;
		return 0;
	}
	pprof__function__init(f);
	f->id = (u64)id + 1;
	f->name = f->system_name = key[0];
	f->filename = key[1];
	ADD(b, function, f);
	return (u64)id + 1;
}

/* Addresses are places in the file: several processes have it at several places in memory. */
static u64 mapping_id(struct builder *b, const struct frame *f)
{
	s64 key[2] = {text(b, f->module), text(b, f->build_id)};
	u32 before = b->mappings.n;
	s64 id;
	Pprof__Mapping *m;

	if (!f->module)
		return 0;
	id = intern(&b->mappings, key, sizeof(key));
	if (id >= 0 && b->mappings.n > before) {
		m = take(b, sizeof(*m));
		if (m) {
			pprof__mapping__init(m);
			m->id = (u64)id + 1;
			m->filename = key[0];
			m->build_id = key[1];
			m->has_functions = 1; /* what has no name was looked for */
		}
		ADD(b, mapping, m);
	}
	if (id < 0 || b->err) {
		b->err = -ENOMEM;
		return 0;
	}
	m = b->p->mapping[id];
	if (m->memory_limit <= f->offset)
		m->memory_limit = (f->offset | 0xfff) + 1;
	m->has_filenames |= f->file != NULL;
	m->has_line_numbers |= f->line != 0;
	m->has_inline_frames |= f->inlined;
	return (u64)id + 1;
}

/* key: mapping, address, and function and line of each of n frames, innermost first. */
static u64 location_id(struct builder *b, const u64 *key, u32 n)
{
	u32 before = b->locations.n, i;
	s64 id = intern(&b->locations, key, (2 + 2 * (size_t)n) * sizeof(*key));
	Pprof__Location *l;

	if (id >= 0 && b->locations.n == before)
		return (u64)id + 1;
	l = id < 0 ? NULL : take(b, sizeof(*l));
	if (!l) {
		b->err = -ENOMEM;
		return 0;
	}
	pprof__location__init(l);
	l->id = (u64)id + 1;
	l->mapping_id = key[0];
	l->address = key[1];
	l->line = take(b, n * sizeof(*l->line));
	for (i = 0; i < n && !b->err; i++) {
		Pprof__Line *line = take(b, sizeof(*line));

		if (!line)
			break;
		pprof__line__init(line);
		line->function_id = key[2 + 2 * i];
		line->line = (s64)key[3 + 2 * i];
		l->line[l->n_line++] = line;
	}
	ADD(b, location, l);
	return (u64)id + 1;
}

static u64 made_up(struct builder *b, const char *name)
{
	u64 key[4] = {0, 0, function_id(b, name, NULL), 0};

	return location_id(b, key, 1);
}

/* The locations of a row into ret, which has room for two more than it has frames. */
static size_t locations(struct builder *b, const struct row *row, u64 *key, u64 *ret)
{
	char label[FRAME_LABEL];
	size_t n = 0;
	u32 i, in;

	if (row->name || !row->nr_frames) {
		snprintf(label, sizeof(label), "[%s]", origin_kind_names[row->kind]);
		ret[n++] = made_up(b, row->name ? row->name : "?");
		ret[n++] = made_up(b, label);
		return n;
	}
	for (i = 0, in = 0; i < row->nr_frames && !b->err; i++) {
		const struct frame *f = &row->frames[i];

		key[2 + 2 * in] = function_id(b, frame_label(f, label, sizeof(label)), f->file);
		key[3 + 2 * in] = f->line;
		in++;
		if (f->inlined && i + 1 < row->nr_frames && f[1].addr == f->addr)
			continue;
		key[0] = mapping_id(b, f);
		key[1] = f->module ? f->offset : f->addr;
		ret[n++] = location_id(b, key, in);
		in = 0;
	}
	return n;
}

/* ---- samples ---- */

static void label(struct builder *b, Pprof__Sample *s, const char *key, const char *str, s64 num)
{
	Pprof__Label *l = take(b, sizeof(*l)), **at;

	if (!l)
		return;
	pprof__label__init(l);
	l->key = text(b, key);
	l->str = str ? text(b, str) : 0;
	l->num = num;
	at = more(b, &s->label, s->n_label, sizeof(*at));
	if (at) {
		*at = l;
		s->n_label++;
	} else {
		free(l);
	}
}

static void labels(struct builder *b, Pprof__Sample *s, const struct row *row, const char *grade)
{
	const struct cost *resident = &row->cost[COST_RESIDENT], *shared = &row->cost[COST_SHARED];
	char name[64], none[512] = "";
	int c, node = -1, nodes = 0;

	label(b, s, "kind", origin_kind_names[row->kind], 0);
	label(b, s, "grade", grade, 0);
	label(b, s, "id", row->id, 0);
	if (row->host)
		label(b, s, "host", row->host, 0);
	if (row->pid) {
		snprintf(name, sizeof(name), "%s (%u)", row->comm ? row->comm : "?", row->pid);
		label(b, s, "process", name, 0);
		label(b, s, "pid", NULL, row->pid);
	} else if (row->several) {
		label(b, s, "process", "[several]", 0);
	}
	for (c = COST_NODE0; c <= COST_NODE7; c++)
		if (row->cost[c].known && cost_value(&row->cost[c]) > 0) {
			node = c - COST_NODE0;
			nodes++;
		}
	if (nodes == 1)
		label(b, s, "node", cost_columns[COST_NODE0 + node].name, 0);
	else if (nodes)
		label(b, s, "node", "several", 0);
	if (shared->known && resident->known)
		label(b, s, "shared",
		      !cost_value(shared)			   ? "no"
		      : cost_value(shared) == cost_value(resident) ? "yes"
								   : "partly",
		      0);
	for (c = 0; c < b->nr_columns; c++)
		if (!row->cost[b->columns[c]].known)
			snprintf(none + strlen(none), sizeof(none) - strlen(none), "%s%s",
				 *none ? "," : "", cost_columns[b->columns[c]].name);
	if (*none)
		label(b, s, "unknown", none, 0);
}

enum part { EXACT, INFERRED, SAMPLED, PARTS };

static s64 part(const struct cost *c, int which)
{
	return !c->known	   ? 0
	       : which == EXACT	   ? c->exact
	       : which == INFERRED ? c->inferred
				   : c->sampled;
}

static void sample(struct builder *b, const struct row *row, const u64 *at, size_t n, int which)
{
	static const char *const grades[PARTS] = {"exact", "inferred", "sampled"};
	Pprof__Sample *s;
	int64_t *v, any = 0;
	int c;

	v = take(b, (size_t)b->nr_columns * sizeof(*v));
	for (c = 0; v && c < b->nr_columns; c++) {
		v[c] = part(&row->cost[b->columns[c]], which);
		any |= v[c];
	}
	s = any ? take(b, sizeof(*s)) : NULL;
	if (!s) {
		free(v);
		return;
	}
	pprof__sample__init(s);
	s->value = v;
	s->n_value = (size_t)b->nr_columns;
	s->location_id = take(b, n * sizeof(*at));
	if (s->location_id) {
		memcpy(s->location_id, at, n * sizeof(*at));
		s->n_location_id = n;
	}
	labels(b, s, row, grades[which]);
	ADD(b, sample, s);
}

static int has_value(const struct builder *b, const struct row *row)
{
	int c = 0;

	while (c < b->nr_columns && !cost_value(&row->cost[b->columns[c]]))
		c++;
	return c < b->nr_columns;
}

static void add_row(struct builder *b, const struct row *row)
{
	u64 *key = take(b, (2 + 2 * ((size_t)row->nr_frames + 1)) * sizeof(*key));
	u64 *at = take(b, ((size_t)row->nr_frames + 2) * sizeof(*at));
	size_t n = key && at ? locations(b, row, key, at) : 0;
	int which;

	for (which = 0; which < PARTS && !b->err; which++)
		sample(b, row, at, n, which);
	free(key);
	free(at);
}

/* ---- the rest ---- */

static void comment(struct builder *b, const char *s)
{
	s64 n = text(b, s), *at = more(b, &b->p->comment, b->p->n_comment, sizeof(*at));

	if (at) {
		*at = n;
		b->p->n_comment++;
	}
}

static void comments(struct builder *b, const struct report *r, const struct out_opts *o)
{
	char *lines = out_contract(r, o), *line, *save, buf[256];
	int c;

	if (!lines)
		b->err = -ENOMEM;
	comment(b, "memprov " MEMPROV_VERSION);
	for (line = lines ? strtok_r(lines, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		comment(b, line + strspn(line, " "));
	free(lines);
	for (c = 0; c < COST_MAX; c++) {
		if (!cost_columns[c].additive || !cost_absent(r, (enum cost_id)c))
			continue;
		snprintf(buf, sizeof(buf), "no %s: %s", cost_columns[c].name,
			 cost_absent(r, (enum cost_id)c));
		comment(b, buf);
	}
}

static void build(struct builder *b, const struct report *r, const struct out_opts *o)
{
	int c, shown = 0;
	size_t i;

	text(b, ""); /* string 0 */
	for (c = 0; c < COST_MAX; c++) {
		if (!cost_columns[c].additive || !out_has(r, c))
			continue;
		b->columns[b->nr_columns++] = c;
		ADD(b, sample_type, value_type(b, c));
		shown |= c == o->column;
	}
	if (!b->nr_columns) {
		b->err = -ENODATA;
		return;
	}
	b->p->default_sample_type = text(b, cost_columns[shown ? o->column : b->columns[0]].name);
	b->p->time_nanos = (s64)r->start_realtime;
	b->p->duration_nanos = (s64)r->duration_ns;
	comments(b, r, o);
	for (i = 0; i < r->nr_rows && !b->err; i++)
		if (has_value(b, &r->rows[i]))
			add_row(b, &r->rows[i]);
	b->p->string_table = take(b, b->text.n * sizeof(char *));
	for (i = 0; i < b->text.n && !b->err; i++) {
		b->p->string_table[i] = strdup(intern_get(&b->text, (u32)i));
		if (!b->p->string_table[i])
			b->err = -ENOMEM;
		else
			b->p->n_string_table++;
	}
}

static int deflate_to(FILE *f, uint8_t *data, size_t len)
{
	z_stream z = {.next_in = data, .avail_in = (uInt)len};
	uint8_t buf[65536];
	int ret;

	if (len > UINT_MAX)
		return -EFBIG;
	/* 16: the gzip format. */
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	do {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		ret = deflate(&z, Z_FINISH);
		fwrite(buf, 1, sizeof(buf) - z.avail_out, f);
	} while (ret == Z_OK);
	deflateEnd(&z);
	return ret != Z_STREAM_END || ferror(f) ? -EIO : 0;
}

int out_pprof(FILE *f, const struct report *r, const struct out_opts *o)
{
	struct builder b = {.p = calloc(1, sizeof(*b.p))};
	uint8_t *data = NULL;
	size_t len = 0;

	if (!b.p)
		return -ENOMEM;
	pprof__profile__init(b.p);
	build(&b, r, o);
	if (!b.err) {
		len = pprof__profile__get_packed_size(b.p);
		data = malloc(len + 1);
		b.err = data ? 0 : -ENOMEM;
	}
	if (!b.err) {
		pprof__profile__pack(b.p, data);
		b.err = deflate_to(f, data, len);
	}
	free(data);
	pprof__profile__free_unpacked(b.p, NULL);
	intern_free(&b.text);
	intern_free(&b.functions);
	intern_free(&b.mappings);
	intern_free(&b.locations);
	return b.err;
}
