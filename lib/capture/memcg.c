/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/capture/clock.h"
#include "lib/capture/memcg.h"

#define FILE_MAX  65536
#define STAT_FILE "memory.stat"
/* v1 prints the largest page counter, in bytes, for "no limit". */
#define V1_NO_LIMIT 0x7ffffffffffff000ull

/* key NULL: the file is one number. */
struct figure {
	int version;
	const char *file, *key, *name;
	enum mp_stat_unit unit;
	int limit;
};

/* clang-format off */
static const struct figure figures[] = {
	{2, "memory.current",      NULL,       "current",     MP_UNIT_BYTES,  0},
	{2, "memory.max",          NULL,       "limit",       MP_UNIT_BYTES,  1},
	{2, "memory.high",         NULL,       "high",        MP_UNIT_BYTES,  1},
	{2, "memory.swap.current", NULL,       "swap",        MP_UNIT_BYTES,  0},
	{2, "memory.events",       "oom",      "oom",         MP_UNIT_NUMBER, 0},
	{2, "memory.events",       "oom_kill", "oom_kill",    MP_UNIT_NUMBER, 0},
	{2, "memory.events",       "max",      "limit_hits",  MP_UNIT_NUMBER, 0},
	{2, "memory.events",       "high",     "high_hits",   MP_UNIT_NUMBER, 0},
	{2, "memory.pressure",     "some",     "psi_some",    MP_UNIT_US,     0},
	{2, "memory.pressure",     "full",     "psi_full",    MP_UNIT_US,     0},
	{1, "memory.usage_in_bytes",      NULL,         "current",    MP_UNIT_BYTES,  0},
	{1, "memory.limit_in_bytes",      NULL,         "limit",      MP_UNIT_BYTES,  1},
	{1, "memory.soft_limit_in_bytes", NULL,         "high",       MP_UNIT_BYTES,  1},
	{1, "memory.oom_control",         "oom_kill",   "oom_kill",   MP_UNIT_NUMBER, 0},
	{1, "memory.failcnt",             NULL,         "limit_hits", MP_UNIT_NUMBER, 0},
	{1, "memory.kmem.usage_in_bytes", NULL,         "kmem",       MP_UNIT_BYTES,  0},
	{1, "memory.pressure",            "some",       "psi_some",   MP_UNIT_US,     0},
	{1, "memory.pressure",            "full",       "psi_full",   MP_UNIT_US,     0},
};

/* Keys of memory.stat in bytes, on v1 also behind "total_". Others are counts, or new. */
static const char *const byte_keys[] = {
	"anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock",
	"vmalloc", "shmem", "zswap", "zswapped", "file_mapped", "file_dirty", "file_writeback",
	"swapcached", "anon_thp", "file_thp", "shmem_thp", "inactive_anon", "active_anon",
	"inactive_file", "active_file", "unevictable", "slab_reclaimable", "slab_unreclaimable",
	"slab", "hugetlb",
	"cache", "rss", "rss_huge", "mapped_file", "dirty", "writeback", "swap",
	"hierarchical_memory_limit", "hierarchical_memsw_limit",
};
/* clang-format on */

static enum mp_stat_unit stat_unit(const char *key)
{
	size_t i;

	if (!strncmp(key, "total_", 6))
		key += 6;
	for (i = 0; i < sizeof(byte_keys) / sizeof(byte_keys[0]); i++)
		if (!strcmp(key, byte_keys[i]))
			return MP_UNIT_BYTES;
	return MP_UNIT_NUMBER;
}

/* ---- text ---- */

/* Whole file as a string. -ENOENT: not there; -ENODEV from the kernel: the group is gone. */
static int slurp(const char *folder, const char *name, char *buf, size_t cap)
{
	char path[CGROUP_PATH + 64];
	size_t at = 0;
	ssize_t n;
	int fd, err = 0;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (at < cap - 1 && (n = read(fd, buf + at, cap - 1 - at)) != 0) {
		if (n < 0) {
			err = -errno;
			break;
		}
		at += (size_t)n;
	}
	close(fd);
	buf[at] = 0;
	if (!err && (at == cap - 1 || strlen(buf) != at))
		err = -EBADMSG;
	return err;
}

/* Decimal digits and nothing else before end, no overflow. */
static int number(const char *s, const char *end, u64 *ret)
{
	u64 v = 0;

	if (s == end)
		return -EBADMSG;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9' || __builtin_mul_overflow(v, 10ull, &v) ||
		    __builtin_add_overflow(v, (u64)(*s - '0'), &v))
			return -EBADMSG;
	}
	*ret = v;
	return 0;
}

/* "key number\n". A line without its newline was cut: so may be its number. */
static int pair(const char *line, char *key, size_t cap, u64 *ret, const char **ret_next)
{
	const char *end = strchr(line, '\n'), *gap = strchr(line, ' ');
	size_t n = gap ? (size_t)(gap - line) : 0, i;

	if (!end || !gap || gap > end || !n || n >= cap)
		return -EBADMSG;
	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)line[i]) && line[i] != '_')
			return -EBADMSG;
	memcpy(key, line, n);
	key[n] = 0;
	*ret_next = end + 1;
	return number(gap + 1, end, ret);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" */
static int pressure(const char *text, const char *kind, u64 *ret)
{
	const char *line, *end, *total;
	size_t n = strlen(kind);

	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			return -EBADMSG;
		if (strncmp(line, kind, n) || line[n] != ' ')
			continue;
		total = memmem(line, (size_t)(end - line), " total=", 7);
		return total ? number(total + 7, end, ret) : -EBADMSG;
	}
	return -ENODATA;
}

static int keyed(const char *text, const char *want, u64 *ret)
{
	char key[48];
	u64 v;
	int err;

	while (*text) {
		err = pair(text, key, sizeof(key), &v, &text);
		if (err)
			return err;
		if (!strcmp(key, want)) {
			*ret = v;
			return 0;
		}
	}
	return -ENODATA;
}

/* One number, or "max". */
static int single(const char *text, int limit, u64 *ret, u32 *ret_state)
{
	const char *end = strchr(text, '\n');

	if (!end || end[1])
		return -EBADMSG;
	if (limit && !strcmp(text, "max\n")) {
		*ret = 0;
		*ret_state = MP_STAT_UNLIMITED;
		return 0;
	}
	return number(text, end, ret);
}

/* ---- readings ---- */

static struct memcg_value *room(struct memcg_reading *r)
{
	struct memcg_value *v;

	if (!(r->n & (r->n - 1))) {
		v = realloc(r->values, (r->n ? 2 * r->n : 1) * sizeof(*v));
		if (!v)
			return NULL;
		r->values = v;
	}
	v = &r->values[r->n++];
	memset(v, 0, sizeof(*v));
	return v;
}

static int add(struct memcg_reading *r, const char *source, const char *name, u64 value, u32 unit,
	       u32 state)
{
	struct memcg_value *v = room(r);

	if (!v)
		return -ENOMEM;
	v->source = source;
	snprintf(v->name, sizeof(v->name), "%s", name);
	v->value = state == MP_STAT_UNLIMITED ? 0 : value;
	v->unit = unit;
	v->state = state;
	return 0;
}

int memcg_add(struct memcg_reading *r, const char *source, const char *name, u64 value)
{
	return add(r, source, name, value, MP_UNIT_BYTES, MP_STAT_VALUE);
}

static int add_figure(struct memcg_reading *r, const struct figure *f, const char *text)
{
	u32 state = MP_STAT_VALUE;
	u64 v = 0;
	int err;

	if (!f->key)
		err = single(text, f->limit, &v, &state);
	else if (f->unit == MP_UNIT_US)
		err = pressure(text, f->key, &v);
	else
		err = keyed(text, f->key, &v);
	if (err)
		return err == -ENODATA ? 0 : err; /* an older kernel has not this key */
	if (f->version == 1 && f->limit && v >= V1_NO_LIMIT)
		state = MP_STAT_UNLIMITED;
	return add(r, f->file, f->name, v, f->unit, state);
}

static int add_stat(struct memcg_reading *r, const char *text)
{
	char key[48];
	u64 v;
	int err = 0;

	while (*text && !err) {
		err = pair(text, key, sizeof(key), &v, &text);
		if (!err)
			err = add(r, STAT_FILE, key, v, stat_unit(key),
				  strstr(key, "_limit") && v >= V1_NO_LIMIT ? MP_STAT_UNLIMITED
									    : MP_STAT_VALUE);
	}
	return err;
}

/* PSI may be switched off, and a file may come with a later kernel: then there is no figure. */
static int is_absent(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP;
}

static int read_figures(const struct cgroup *c, struct memcg_reading *r, char *text,
			const char **ret_file)
{
	const char *have = NULL;
	int err = 0;
	size_t i;

	for (i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		const struct figure *f = &figures[i];

		if (f->version != c->version)
			continue;
		*ret_file = f->file;
		if (!have || strcmp(have, f->file))
			err = slurp(c->folder, f->file, text, FILE_MAX);
		have = f->file;
		if (!err)
			err = add_figure(r, f, text);
		else if (is_absent(err))
			continue; /* err stays: so do the file's other figures */
		if (err)
			return err;
	}
	return 0;
}

int memcg_read(const struct cgroup *c, struct memcg_reading *ret_r, char *msg, size_t len)
{
	struct memcg_reading r = {0};
	const char *file = STAT_FILE;
	char *text = malloc(FILE_MAX);
	int err;

	if (!text)
		return -ENOMEM;
	err = read_figures(c, &r, text, &file);
	if (!err) {
		file = STAT_FILE;
		err = slurp(c->folder, file, text, FILE_MAX);
		if (!err)
			err = *text ? add_stat(&r, text) : -EBADMSG;
	}
	free(text);
	if (!err) {
		*ret_r = r;
		return 0;
	}
	memcg_release(&r);
	if (err == -ENODEV)
		err = -ENOENT;
	snprintf(msg, len, "%s/%s: %s", c->folder, file,
		 err == -EBADMSG ? "not as the kernel writes it: a line is no key and number"
				 : strerror(-err));
	return err;
}

void memcg_release(struct memcg_reading *r)
{
	free(r->values);
	memset(r, 0, sizeof(*r));
}

/* ---- records ---- */

int memcg_figure(const struct memcg_reading *r, const char *name, u64 *ret)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->values[i].name, name) && r->values[i].state == MP_STAT_VALUE) {
			*ret = r->values[i].value;
			return 0;
		}
	return -ENODATA;
}

int memcg_write(const struct cgroup *c, const struct memcg_reading *r, u32 groups, u32 flags,
		u32 when, u64 seq, struct trace_writer *w)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_cgroup ev;
	} head = {.hdr = {.type = MP_EV_CGROUP, .size = sizeof(head), .seq = seq}};
	struct {
		struct mp_hdr hdr;
		struct mp_ev_cgroup_stat ev;
	} stat = {.hdr = {.type = MP_EV_CGROUP_STAT, .size = sizeof(stat), .seq = seq}};
	s64 source, name, path = trace_string(w, c->path);
	size_t i;
	int err;

	if (path < 0)
		return (int)path;
	head.hdr.time_ns = stat.hdr.time_ns = now_ns();
	head.ev.path = (u32)path;
	head.ev.version = (u32)c->version;
	head.ev.groups = groups;
	head.ev.flags = flags | (c->root ? MP_CGROUP_ROOT : 0);
	head.ev.when = when;
	err = trace_write(w, &head.hdr);
	for (i = 0; i < r->n && !err; i++) {
		const struct memcg_value *v = &r->values[i];

		source = trace_string(w, v->source);
		name = trace_string(w, v->name);
		if (source < 0 || name < 0)
			return (int)(source < 0 ? source : name);
		stat.ev.value = v->value;
		stat.ev.source = (u32)source;
		stat.ev.name = (u32)name;
		stat.ev.unit = v->unit;
		stat.ev.state = v->state;
		stat.ev.when = when;
		err = trace_write(w, &stat.hdr);
	}
	return err;
}
