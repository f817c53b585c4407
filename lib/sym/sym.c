/* SPDX-License-Identifier: GPL-2.0-only
 * Address spaces: which file was mapped where, and a cache of what the files said. Mappings are
 * kept sorted and disjoint, so that a lookup is one binary search. Nothing of a file is
 * read before somebody asks for a name in it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sym/dso.h"
#include "lib/sym/perfmap.h"
#include "lib/sym/sym.h"

#define DELETED " (deleted)"

struct sym_file {
	struct sym_file *next;
	char *path;
	int root, fd;
	int opened; /* the one trial was made */
	struct dso *dso; /* this or the next; neither: module and offset only */
	struct perfmap *map;
};

struct sym_map {
	u64 start;
	u64 end;
	u64 pgoff;
	struct sym_file *file;
};

struct sym_entry {
	struct sym_entry *next;
	struct sym_file *file;
	u64 offset;
	int nr;
	struct dso_frame frames[];
};

struct sym_space {
	struct sym_file *files;
	struct sym_map *maps;
	size_t nr_maps;
	size_t cap_maps;
	struct sym_entry **buckets;
	size_t nr_buckets; /* power of two, or 0 */
	size_t nr_entries;
};

int sym_space_new(struct sym_space **ret_s)
{
	*ret_s = calloc(1, sizeof(**ret_s));
	return *ret_s ? 0 : -ENOMEM;
}

static void file_free(struct sym_file *f)
{
	dso_close(&f->dso);
	perfmap_free(&f->map);
	free(f->path);
	free(f);
}

void sym_space_free(struct sym_space **s)
{
	struct sym_entry *e;
	struct sym_file *f;
	size_t i;

	if (!*s)
		return;
	for (i = 0; i < (*s)->nr_buckets; i++) {
		while ((e = (*s)->buckets[i])) {
			(*s)->buckets[i] = e->next;
			free(e);
		}
	}
	while ((f = (*s)->files)) {
		(*s)->files = f->next;
		file_free(f);
	}
	free((*s)->buckets);
	free((*s)->maps);
	free(*s);
	*s = NULL;
}

/* A deleted file's name may by now be a different file, so it is not tried. */
static int has_file(const char *path)
{
	size_t len = strlen(path);
	size_t del = strlen(DELETED);

	if (!len || path[0] == '[')
		return 0;
	return len < del || strcmp(path + len - del, DELETED) != 0;
}

static int file_get(struct sym_space *s, int root, int fd, const char *path, struct sym_file **ret)
{
	struct sym_file *f;

	if (fd == SYM_BY_PATH && !has_file(path))
		fd = SYM_NO_FILE;
	for (f = s->files; f; f = f->next) {
		if (f->root == root && f->fd == fd && !strcmp(f->path, path)) {
			*ret = f;
			return 0;
		}
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->root = root;
	f->fd = fd;
	f->path = strdup(path);
	if (!f->path) {
		file_free(f);
		return -ENOMEM;
	}
	f->next = s->files;
	s->files = f;
	*ret = f;
	return 0;
}

static int is_jit(const struct sym_file *f)
{
	return !strcmp(f->path, SYM_JIT);
}

static int file_read(struct sym_file *f)
{
	int err = 0;

	if (!f->opened && f->fd != SYM_NO_FILE)
		err = is_jit(f) ? perfmap_read(f->fd, &f->map)
				: dso_open(&f->dso, f->root, f->fd, f->path);
	f->opened = err != -ENOMEM;
	return err == -ENOMEM ? err : 0;
}

void sym_space_forget(struct sym_space *s, int fd)
{
	struct sym_file *f;

	for (f = s->files; f; f = f->next)
		if (f->fd == fd) {
			dso_close(&f->dso);
			perfmap_free(&f->map);
			f->fd = SYM_NO_FILE;
		}
}

/* Index of the first map that ends after addr. */
static size_t first_after(const struct sym_space *s, u64 addr)
{
	size_t lo = 0;
	size_t hi = s->nr_maps;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->maps[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static int maps_reserve(struct sym_space *s, size_t want)
{
	struct sym_map *maps;
	size_t cap = s->cap_maps ? s->cap_maps : 32;

	while (cap < want)
		cap *= 2;
	if (cap == s->cap_maps)
		return 0;
	maps = reallocarray(s->maps, cap, sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	s->maps = maps;
	s->cap_maps = cap;
	return 0;
}

/* Replaces all that m overlaps by m and the pieces that stick out on both sides. */
static int maps_insert(struct sym_space *s, const struct sym_map *m)
{
	struct sym_map piece[3];
	size_t lo = first_after(s, m->start);
	size_t hi = lo;
	size_t n = 0;
	int err;

	err = maps_reserve(s, s->nr_maps + 2);
	if (err)
		return err;
	while (hi < s->nr_maps && s->maps[hi].start < m->end)
		hi++;
	if (hi > lo && s->maps[lo].start < m->start) {
		piece[n] = s->maps[lo];
		piece[n++].end = m->start;
	}
	piece[n++] = *m;
	if (hi > lo && s->maps[hi - 1].end > m->end) {
		piece[n] = s->maps[hi - 1];
		piece[n].pgoff += m->end - piece[n].start;
		piece[n++].start = m->end;
	}
	memmove(&s->maps[lo + n], &s->maps[hi], (s->nr_maps - hi) * sizeof(*s->maps));
	memcpy(&s->maps[lo], piece, n * sizeof(*piece));
	s->nr_maps = s->nr_maps - (hi - lo) + n;
	return 0;
}

int sym_space_map(struct sym_space *s, u64 start, u64 end, u64 pgoff, int root, int fd,
		  const char *path)
{
	struct sym_map m = {.start = start, .end = end, .pgoff = pgoff};
	int err;

	if (!s || !path || start >= end || pgoff + (end - start) < pgoff)
		return -EINVAL;
	err = file_get(s, root, fd, path, &m.file);
	if (err)
		return err;
	if (is_jit(m.file))
		m.pgoff = start;
	return maps_insert(s, &m);
}

static size_t bucket_of(const struct sym_file *f, u64 offset, size_t nr)
{
	u64 h = (offset ^ (u64)(unsigned long)f >> 4) * 0x9e3779b97f4a7c15ULL;

	return (size_t)(h >> 32) & (nr - 1);
}

static int cache_grow(struct sym_space *s)
{
	size_t nr = s->nr_buckets ? s->nr_buckets * 2 : 256;
	struct sym_entry **buckets;
	struct sym_entry *e;
	size_t i;
	size_t b;

	buckets = calloc(nr, sizeof(struct sym_entry *));
	if (!buckets)
		return -ENOMEM;
	for (i = 0; i < s->nr_buckets; i++) {
		while ((e = s->buckets[i])) {
			s->buckets[i] = e->next;
			b = bucket_of(e->file, e->offset, nr);
			e->next = buckets[b];
			buckets[b] = e;
		}
	}
	free(s->buckets);
	s->buckets = buckets;
	s->nr_buckets = nr;
	return 0;
}

static int look_up_jit(const struct perfmap *map, u64 addr, struct dso_frame *ret)
{
	*ret = (struct dso_frame){.function = perfmap_find(map, addr)};
	return 1;
}

static int cache_get(struct sym_space *s, struct sym_file *f, u64 offset,
		     const struct sym_entry **ret)
{
	struct dso_frame frames[DSO_MAX_FRAMES];
	struct sym_entry *e = NULL;
	size_t b;
	int nr;

	if (s->nr_buckets)
		e = s->buckets[bucket_of(f, offset, s->nr_buckets)];
	while (e && (e->file != f || e->offset != offset))
		e = e->next;
	*ret = e;
	if (e)
		return 0;
	if (s->nr_entries >= s->nr_buckets && cache_grow(s))
		return -ENOMEM;
	nr = f->map ? look_up_jit(f->map, offset, frames) : dso_lookup(f->dso, offset, frames);
	if (nr < 0)
		return nr;
	e = malloc(sizeof(*e) + (size_t)nr * sizeof(*frames));
	if (!e)
		return -ENOMEM;
	e->file = f;
	e->offset = offset;
	e->nr = nr;
	memcpy(e->frames, frames, (size_t)nr * sizeof(*frames));
	b = bucket_of(f, offset, s->nr_buckets);
	e->next = s->buckets[b];
	s->buckets[b] = e;
	s->nr_entries++;
	*ret = e;
	return 0;
}

static const struct sym_map *map_at(const struct sym_space *s, u64 at)
{
	size_t idx = first_after(s, at);

	return idx == s->nr_maps || s->maps[idx].start > at ? NULL : &s->maps[idx];
}

int sym_locate(const struct sym_space *s, u64 addr, int is_return, struct sym_frame *ret,
	       int *ret_fd)
{
	u64 back = is_return && addr ? 1 : 0;
	const struct sym_map *m = map_at(s, addr - back);

	if (!m)
		return 0;
	*ret = (struct sym_frame){.module = m->file->path, .offset = m->pgoff + (addr - m->start)};
	*ret_fd = m->file->fd;
	return 1;
}

int sym_resolve(struct sym_space *s, u64 addr, int is_return, struct sym_frame *ret, int max)
{
	const struct sym_entry *e = NULL;
	const struct sym_map *m;
	u64 back = is_return && addr ? 1 : 0;
	u64 at = addr - back;
	u64 offset;
	int err;
	int i;

	if (!s || !ret || max <= 0)
		return -EINVAL;
	m = map_at(s, at);
	if (!m)
		return 0;
	offset = m->pgoff + (at - m->start);
	err = file_read(m->file);
	if (!err && (m->file->dso || m->file->map))
		err = cache_get(s, m->file, offset, &e);
	if (err)
		return err;
	for (i = 0; i < max && i < (e ? e->nr : 1); i++) {
		ret[i] = (struct sym_frame){.module = m->file->path, .offset = offset + back};
		if (!e)
			continue;
		ret[i].build_id = m->file->dso ? dso_build_id(m->file->dso) : NULL;
		ret[i].function = e->frames[i].function;
		ret[i].file = e->frames[i].file;
		ret[i].line = e->frames[i].line;
		ret[i].inlined = e->frames[i].inlined;
	}
	return i;
}

int sym_unwind(struct sym_space *s, u64 addr, int is_return)
{
	u64 at = addr - (is_return && addr ? 1 : 0);
	const struct sym_map *m = map_at(s, at);

	if (!m || file_read(m->file) || !m->file->dso)
		return MP_FRAME_UNKNOWN;
	return dso_unwind(m->file->dso, m->pgoff + (at - m->start));
}
