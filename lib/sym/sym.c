/* SPDX-License-Identifier: GPL-2.0-only
 * Address spaces: which file was mapped where. Mappings are kept sorted and disjoint, so that a
 * lookup is one binary search. Nothing of a file is read before somebody asks for a name in it. */
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
	char *path;
	int root, fd;
	int opened; /* the one trial was made */
	struct dso *dso; /* this or the next; neither: module and offset only */
	struct perfmap *map;
};

struct sym_files {
	struct sym_file *file;
	u32 nr, cap;
};

struct sym_map {
	u64 start;
	u64 end;
	u64 pgoff;
	u32 file;
};

struct sym_space {
	struct sym_files *files;
	struct sym_map *maps;
	size_t nr_maps;
	size_t cap_maps;
};

int sym_files_new(struct sym_files **ret_k)
{
	*ret_k = calloc(1, sizeof(**ret_k));
	return *ret_k ? 0 : -ENOMEM;
}

static void close_file(struct sym_file *f)
{
	dso_close(&f->dso);
	perfmap_free(&f->map);
}

void sym_files_free(struct sym_files **k)
{
	u32 i;

	if (!*k)
		return;
	for (i = 0; i < (*k)->nr; i++) {
		close_file(&(*k)->file[i]);
		free((*k)->file[i].path);
	}
	free((*k)->file);
	free(*k);
	*k = NULL;
}

int sym_space_new(struct sym_files *k, struct sym_space **ret_s)
{
	struct sym_space *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->files = k;
	*ret_s = s;
	return 0;
}

void sym_space_free(struct sym_space **s)
{
	if (!*s)
		return;
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

static int file_get(struct sym_files *k, int root, int fd, const char *path, u32 *ret)
{
	struct sym_file *f;
	u32 i, cap = k->cap ? k->cap * 2 : 64;

	if (fd == SYM_BY_PATH && !has_file(path))
		fd = SYM_NO_FILE;
	for (i = 0; i < k->nr; i++) {
		f = &k->file[i];
		if (f->root == root && f->fd == fd && !strcmp(f->path, path)) {
			*ret = i;
			return 0;
		}
	}
	if (k->nr == k->cap) {
		f = reallocarray(k->file, cap, sizeof(*f));
		if (!f)
			return -ENOMEM;
		k->file = f;
		k->cap = cap;
	}
	f = &k->file[k->nr];
	*f = (struct sym_file){.path = strdup(path), .root = root, .fd = fd};
	if (!f->path)
		return -ENOMEM;
	*ret = k->nr++;
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

int sym_has_file(const struct sym_files *k, u32 file)
{
	return k->file[file].fd != SYM_NO_FILE;
}

void sym_forget(struct sym_files *k, u32 file)
{
	close_file(&k->file[file]);
	k->file[file].fd = SYM_NO_FILE;
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
	err = file_get(s->files, root, fd, path, &m.file);
	if (err)
		return err;
	if (is_jit(&s->files->file[m.file]))
		m.pgoff = start;
	return maps_insert(s, &m);
}

int sym_space_each(const struct sym_space *s,
		   int (*fn)(void *ctx, u64 start, u64 pgoff, int fd, const char *path), void *ctx)
{
	size_t i;
	int err = 0;

	for (i = 0; i < s->nr_maps && !err; i++) {
		const struct sym_map *m = &s->maps[i];
		const struct sym_file *f = &s->files->file[m->file];

		err = fn(ctx, m->start, m->pgoff, f->fd, f->path);
	}
	return err;
}

static const struct sym_map *map_at(const struct sym_space *s, u64 at)
{
	size_t idx = first_after(s, at);

	return idx == s->nr_maps || s->maps[idx].start > at ? NULL : &s->maps[idx];
}

static u64 back(u64 addr, int is_return)
{
	return addr - (is_return && addr ? 1 : 0);
}

int sym_locate(const struct sym_space *s, u64 addr, int is_return, struct sym_spot *ret)
{
	const struct sym_map *m = map_at(s, back(addr, is_return));

	if (!m)
		return 0;
	*ret = (struct sym_spot){.offset = m->pgoff + (addr - m->start),
				 .file = m->file,
				 .is_return = is_return && addr};
	return 1;
}

struct sym_frame sym_place(const struct sym_files *k, const struct sym_spot *at)
{
	return (struct sym_frame){.module = k->file[at->file].path, .offset = at->offset};
}

static int look_up(const struct sym_file *f, u64 offset, struct dso_frame *ret)
{
	ret[0] = (struct dso_frame){0};
	if (f->map)
		ret[0].function = perfmap_find(f->map, offset);
	return f->dso ? dso_lookup(f->dso, offset, ret) : 1;
}

int sym_resolve(struct sym_files *k, const struct sym_spot *at, struct sym_frame *ret, int max)
{
	struct sym_file *f = &k->file[at->file];
	struct dso_frame frames[DSO_MAX_FRAMES];
	int err, i, n;

	if (max <= 0)
		return -EINVAL;
	err = file_read(f);
	n = err ? err : look_up(f, at->offset - at->is_return, frames);
	for (i = 0; i < max && i < n; i++) {
		ret[i] = sym_place(k, at);
		ret[i].build_id = f->dso ? dso_build_id(f->dso) : NULL;
		ret[i].function = frames[i].function;
		ret[i].file = frames[i].file;
		ret[i].line = frames[i].line;
		ret[i].inlined = frames[i].inlined;
	}
	return n < 0 ? n : i;
}

int sym_unwind(struct sym_files *k, const struct sym_spot *at)
{
	struct sym_file *f = &k->file[at->file];

	if (file_read(f) || !f->dso)
		return MP_FRAME_UNKNOWN;
	return dso_unwind(f->dso, at->offset - at->is_return);
}
