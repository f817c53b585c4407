/* SPDX-License-Identifier: GPL-2.0-only
 * Internal to the screen: its state, shared by keys and drawing. */
#ifndef MP_CMD_TOP_STATE_H
#define MP_CMD_TOP_STATE_H

#include "cmd/top/history.h"
#include "cmd/top/screen.h"
#include "lib/join/filter.h"

#define TEXT_MAX 256

enum prompt { PROMPT_NONE, PROMPT_SORT, PROMPT_FILTER, PROMPT_MARK, PROMPT_COLUMNS };

struct screen {
	void *terminal; /* ncurses' SCREEN */
	int utf8, colour;
	struct report *r; /* NULL: nothing came yet */
	struct history *history;
	struct out_opts out;
	int columns[COST_MAX + 2];
	int chosen[COST_MAX + 2]; /* instead of the usual columns; -1 first: none are */
	int view; /* number of a view, -1: the usual columns */
	int by_given; /* the column is the user's choice, not the view's */
	int group;
	struct filter *filter;
	char filter_text[TEXT_MAX];
	size_t first, selected; /* rows: on top of the list, and under the bar */
	char selected_key[48];
	size_t page; /* rows that fit */
	size_t detail_first; /* line */
	int paused, detail, help, dirty;
	enum prompt prompt;
	char typed[TEXT_MAX], message[TEXT_MAX];
};

/* draw.c */
void screen_draw(struct screen *s);
/* detail.c: lines about the selected row, to be freed. */
char *screen_detail(struct screen *s, const struct row *row);

#endif
