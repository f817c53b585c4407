/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/capture/announced.h"
#include "lib/capture/modules.h"
#include "lib/capture/notes.h"

#define MAX_ARGS 3

/* clang-format off */
static const struct {
	const char *provider, *name;
	enum mp_alloc_args args;
} probes[] = {
	{"otel_memory", "alloc", MP_ARGS_SAMPLE},
	{"otel_memory", "free", MP_ARGS_SAMPLE_END},
	{"memprov_adapter", "sampler", MP_ARGS_SAMPLER},
	{"memprov_adapter", "lost", MP_ARGS_SAMPLE_LOST},
};

/* By number, as assemblers write them in 8, 4, 2 and 1 bytes. */
static const char *const registers[16][4] = {
	{"rax", "eax", "ax", "al"}, {"rbx", "ebx", "bx", "bl"}, {"rcx", "ecx", "cx", "cl"},
	{"rdx", "edx", "dx", "dl"}, {"rsi", "esi", "si", "sil"}, {"rdi", "edi", "di", "dil"},
	{"rbp", "ebp", "bp", "bpl"}, {"rsp", "esp", "sp", "spl"}, {"r8", "r8d", "r8w", "r8b"},
	{"r9", "r9d", "r9w", "r9b"}, {"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"},
	{"r12", "r12d", "r12w", "r12b"}, {"r13", "r13d", "r13w", "r13b"},
	{"r14", "r14d", "r14w", "r14b"}, {"r15", "r15d", "r15w", "r15b"},
};
/* clang-format on */

/* The register that text begins with, and its name's length; -1. */
static int find_register(const char *text, size_t *ret_len)
{
	size_t i, j;

	*ret_len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (i = 0; i < 16; i++)
		for (j = 0; j < 4; j++)
			if (strlen(registers[i][j]) == *ret_len &&
			    !strncmp(registers[i][j], text, *ret_len))
				return (int)i;
	return -1;
}

/* "8@%rdi", "-4@-16(%rbp)". Returns what follows, NULL: nothing we can read. */
static const char *one_arg(const char *text, u64 *ret_spec)
{
	char *end;
	long size = strtol(text, &end, 10), offset = 0;
	u64 spec = MP_USDT_THERE | (size < 0 ? MP_USDT_SIGNED : 0);
	size_t len;
	int reg;

	size = size < 0 ? -size : size;
	if (*end != '@' || (size != 1 && size != 2 && size != 4 && size != 8))
		return NULL;
	spec |= MP_USDT_LOG((u64)__builtin_ctzl((unsigned long)size));
	text = end + 1;
	if (*text != '%') {
		offset = strtol(text, &end, 10);
		if (*end != '(' || end[1] != '%' || offset >= MP_USDT_REACH ||
		    offset < -MP_USDT_REACH)
			return NULL;
		spec |= MP_USDT_MEMORY | ((u64)offset & 0xfff) << MP_USDT_OFFSET;
		text = end + 1;
	}
	reg = find_register(++text, &len);
	text += len;
	if (reg < 0 || (spec & MP_USDT_MEMORY && *text++ != ')'))
		return NULL;
	*ret_spec = spec | (u64)reg;
	return text;
}

int announced_args(const char *text, u64 *ret_cookie)
{
	u64 cookie = 0, spec;
	int n;

	for (n = 0; *text && n < MAX_ARGS; n++) {
		text = one_arg(text, &spec);
		if (!text || (*text && *text != ' '))
			return -EINVAL;
		text += strspn(text, " ");
		cookie |= spec << n * MP_USDT_BITS;
	}
	*ret_cookie = cookie;
	return 0;
}

/* ---- files ---- */

/* 1: it is one of ours; 0; -EINVAL. */
static int site_of(int fd, const char *provider, const struct note *note, struct site *ret)
{
	size_t i;

	for (i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
		if (strcmp(probes[i].provider, provider) || strcmp(probes[i].name, note->name))
			continue;
		*ret = (struct site){
			.offset = note->offset,
			.counter = note->semaphore,
			.args = probes[i].args,
			.family = MP_FAMILY_MALLOC,
		};
		return announced_args(note->args, &ret->cookie) || notes_unsafe(fd, note) ? -EINVAL
											  : 1;
	}
	return 0;
}

static int sites_of(int fd, const char *provider, struct site *ret, int nr)
{
	static struct note notes[NOTES_MAX];
	int n = notes_read(fd, provider, notes), i, is;

	if (n < 0)
		return n;
	for (i = 0; i < n && nr < SITES_MAX; i++) {
		is = site_of(fd, provider, &notes[i], &ret[nr]);
		if (is < 0)
			return is;
		nr += is;
	}
	return nr;
}

int announced_sites(int fd, struct site *ret)
{
	int nr = sites_of(fd, "otel_memory", ret, 0);

	/* The adapter's own are worth nothing without the others. */
	return nr <= 0 ? nr : sites_of(fd, "memprov_adapter", ret, nr);
}

/* ---- processes ---- */

/* Files that were looked into: many processes map the same. */
struct seen {
	struct {
		ino_t ino;
		dev_t dev;
	} * files;
	size_t nr;
	int is_there;
};

/* A file that cannot be remembered is looked into again. */
static int is_known(struct seen *s, int fd)
{
	struct stat st;
	void *files;
	size_t i;

	if (fstat(fd, &st))
		return 1;
	for (i = 0; i < s->nr; i++)
		if (s->files[i].ino == st.st_ino && s->files[i].dev == st.st_dev)
			return 1;
	files = reallocarray(s->files, s->nr + 1, sizeof(*s->files));
	if (!files)
		return 0;
	s->files = files;
	s->files[s->nr].ino = st.st_ino;
	s->files[s->nr++].dev = st.st_dev;
	return 0;
}

static int look(void *ctx, int fd, const struct mp_ev_vma *v, const char *path)
{
	struct site sites[SITES_MAX];
	struct seen *s = ctx;

	(void)v;
	(void)path;
	if (!is_known(s, fd))
		s->is_there = announced_sites(fd, sites) > 0;
	return s->is_there;
}

int announced(const pid_t *pids, int nr)
{
	struct seen seen = {0};
	int i;

	for (i = 0; i < nr && !seen.is_there; i++)
		modules_each_code(pids[i], look, &seen);
	free(seen.files);
	return seen.is_there;
}
