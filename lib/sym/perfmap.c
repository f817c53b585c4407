/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/sym/perfmap.h"

#define MAX_BYTES   (256u << 20)
#define MAX_OVERLAP 64 /* entries looked at for one address */

struct entry {
	u64 start, end;
	u32 line; /* a later one counts more */
	u32 name; /* offset in text */
};

struct perfmap {
	char *text;
	size_t len;
	struct entry *entries;
	size_t nr, cap;
};

static int read_text(int fd, struct perfmap *m)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > MAX_BYTES)
		return -EFBIG;
	m->text = malloc((size_t)st.st_size + 1);
	if (!m->text)
		return -ENOMEM;
	while (m->len < (size_t)st.st_size) {
		n = pread(fd, m->text + m->len, (size_t)st.st_size - m->len, (off_t)m->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		m->len += (size_t)n;
	}
	m->text[m->len] = 0;
	return 0;
}

static int hex(char **p, u64 *ret)
{
	char *at = *p;
	u64 v = 0;
	int digit;

	if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	*p = at;
	for (;; at++) {
		if (*at >= '0' && *at <= '9')
			digit = *at - '0';
		else if ((*at | 32) >= 'a' && (*at | 32) <= 'f')
			digit = (*at | 32) - 'a' + 10;
		else
			break;
		if (v >> 60)
			return 0;
		v = v << 4 | (u64)digit;
	}
	*ret = v;
	if (at == *p || *at != ' ')
		return 0;
	while (*at == ' ')
		at++;
	*p = at;
	return 1;
}

static int add(struct perfmap *m, char *line, u32 number)
{
	struct entry e = {.line = number}, *more;
	size_t cap = m->cap ? m->cap * 2 : 1024;
	u64 size;

	if (!hex(&line, &e.start) || !hex(&line, &size) || !size || e.start + size < e.start ||
	    !*line)
		return 0;
	e.end = e.start + size;
	e.name = (u32)(line - m->text);
	if (m->nr == m->cap) {
		more = reallocarray(m->entries, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		m->entries = more;
		m->cap = cap;
	}
	m->entries[m->nr++] = e;
	return 0;
}

/* The last line may be half written. */
static int parse(struct perfmap *m)
{
	char *line = m->text, *end;
	u32 number = 0;
	int err = 0;

	while (!err && (end = memchr(line, '\n', m->len - (size_t)(line - m->text)))) {
		*end = 0;
		err = add(m, line, number++);
		line = end + 1;
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

int perfmap_read(int fd, struct perfmap **ret_m)
{
	struct perfmap *m = calloc(1, sizeof(*m));
	int err = m ? read_text(fd, m) : -ENOMEM;

	if (!err)
		err = parse(m);
	if (err) {
		perfmap_free(&m);
		return err;
	}
	if (m->nr)
		qsort(m->entries, m->nr, sizeof(*m->entries), by_start);
	*ret_m = m;
	return 0;
}

void perfmap_free(struct perfmap **m)
{
	if (!*m)
		return;
	free((*m)->text);
	free((*m)->entries);
	free(*m);
	*m = NULL;
}

const char *perfmap_find(const struct perfmap *m, u64 addr)
{
	const struct entry *best = NULL;
	size_t lo = 0, hi = m->nr, i;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->entries[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (i = 0; i < MAX_OVERLAP && i < lo; i++) {
		const struct entry *e = &m->entries[lo - 1 - i];

		if (addr < e->end && (!best || e->line > best->line))
			best = e;
	}
	return best ? m->text + best->name : NULL;
}
