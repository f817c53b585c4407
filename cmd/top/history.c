/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/top/history.h"
#include "lib/out/intern.h"

struct series {
	s64 value[HISTORY_LEN]; /* a ring */
	u64 last; /* number of its latest picture */
	unsigned int n; /* pictures without a gap */
};

struct history {
	struct intern rows;
	struct series *all;
	u32 room;
	u64 pictures;
	int column;
	char group[16];
};

int history_new(struct history **ret_h)
{
	*ret_h = calloc(1, sizeof(**ret_h));
	return *ret_h ? 0 : -ENOMEM;
}

static void forget(struct history *h)
{
	intern_free(&h->rows);
	free(h->all);
	memset(h, 0, sizeof(*h));
}

void history_free(struct history **h)
{
	if (*h)
		forget(*h);
	free(*h);
	*h = NULL;
}

static void key_of(const struct row *row, char *buf, size_t len)
{
	snprintf(buf, len, "%s@%u", row->id, row->pid);
}

int history_add(struct history *h, const struct report *r, int column, const char *group)
{
	char key[48];
	size_t i;

	/* What has come and gone must not stay for ever. */
	if (h->column != column || strcmp(h->group, group) || h->rows.n > 4 * r->nr_rows + 1000)
		forget(h);
	h->column = column;
	snprintf(h->group, sizeof(h->group), "%s", group);
	h->pictures++;
	for (i = 0; i < r->nr_rows; i++) {
		const struct cost *c = &r->rows[i].cost[column];
		struct series *s;
		s64 n;

		if (!c->known)
			continue;
		key_of(&r->rows[i], key, sizeof(key));
		n = intern_text(&h->rows, key);
		if (n < 0)
			return (int)n;
		if (h->rows.n > h->room) {
			u32 room = h->room ? h->room * 2 : 256;

			s = realloc(h->all, room * sizeof(*s));
			if (!s)
				return -ENOMEM;
			memset(s + h->room, 0, (room - h->room) * sizeof(*s));
			h->all = s;
			h->room = room;
		}
		s = &h->all[n];
		s->n = s->last + 1 == h->pictures ? s->n + 1 : 1;
		s->last = h->pictures;
		s->value[h->pictures % HISTORY_LEN] = cost_value(c);
	}
	return 0;
}

void history_get(struct history *h, const struct row *row, struct past *ret)
{
	const struct series *s;
	char key[48];
	s64 n;
	u32 i;

	ret->n = 0;
	key_of(row, key, sizeof(key));
	n = intern_find(&h->rows, key, strlen(key));
	if (n < 0)
		return;
	s = &h->all[n];
	if (s->last != h->pictures)
		return;
	ret->n = s->n < HISTORY_LEN ? s->n : HISTORY_LEN;
	for (i = 0; i < ret->n; i++)
		ret->value[i] = s->value[(h->pictures - ret->n + 1 + i) % HISTORY_LEN];
}

void history_sparkline(const struct past *p, int utf8, unsigned int width, char *buf, size_t len)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", ",", "-", "=", "+", "*", "#"};
	unsigned int i, first = p->n > width ? p->n - width : 0;
	double top = 0;
	size_t at = 0;

	for (i = first; i < p->n; i++)
		if ((double)p->value[i] > top)
			top = (double)p->value[i];
	for (i = p->n - first; i < width && at + 1 < len; i++)
		buf[at++] = ' ';
	for (i = first; i < p->n && at + 4 < len; i++) {
		double share = top > 0 && p->value[i] > 0 ? (double)p->value[i] / top : 0;
		const char *c = (utf8 ? blocks : ascii)[(int)(share * 7 + 0.5)];

		memcpy(buf + at, c, strlen(c));
		at += strlen(c);
	}
	buf[at] = 0;
}
