/* SPDX-License-Identifier: GPL-2.0-only
 * Drawing. Text of any origin is cut to its place by the columns it takes, never by bytes; control
 * characters, and what the terminal's character set lacks, become ?. */
#define _GNU_SOURCE
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "cmd/columns.h"
#include "cmd/top/state.h"
#include "lib/text/text.h"

#define CELL	  14 /* a number with its mark */
#define SPARK	  8
#define WITH_RATE 100 /* columns of a terminal that has room for it */
#define OWNER_MIN 24
#define PLAIN	  0
#define GREW	  1 /* colour pairs */
#define SHRANK	  2

/* At most width columns of text from (y, x) on. Returns the columns taken. */
static int put(int y, int x, int width, const char *text)
{
	wchar_t line[512];
	mbstate_t state = {0};
	size_t len = strlen(text), n = 0, used;
	int taken = 0, w;

	while (len && n < sizeof(line) / sizeof(line[0]) - 1) {
		wchar_t c;

		used = mbrtowc(&c, text, len, &state);
		if (used == (size_t)-1 || used == (size_t)-2 || !used) {
			memset(&state, 0, sizeof(state));
			c = L'?';
			used = 1;
		}
		w = wcwidth(c);
		if (w < 0) {
			c = L'?';
			w = 1;
		}
		if (taken + w > width)
			break;
		line[n++] = c;
		taken += w;
		text += used;
		len -= used;
	}
	line[n] = 0;
	if (y >= 0 && y < LINES && x < COLS)
		mvaddnwstr(y, x, line, (int)n);
	return taken;
}

static void colour(const struct screen *s, int pair, int on)
{
	attr_t a = s->colour ? COLOR_PAIR(pair) : A_BOLD;

	if (pair == PLAIN)
		return;
	if (on)
		attron(a);
	else
		attroff(a);
}

/* Lines are wrapped at spaces; skips the first ones. Returns how many there are behind those. */
static int draw_text(char *text, int y, int height, size_t skip)
{
	char *line, *save, keep;
	size_t at = 0;

	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		while (1) {
			size_t len = strlen(line), cut = len;

			if (len > (size_t)COLS) {
				for (cut = (size_t)COLS; cut && line[cut] != ' '; cut--)
					;
				cut = cut < (size_t)COLS / 2 ? len : cut;
			}
			keep = line[cut];
			line[cut] = 0;
			if (at++ >= skip && (int)(at - skip) <= height)
				put(y + (int)(at - skip) - 1, 0, COLS, line);
			line[cut] = keep;
			if (cut == len)
				break;
			line += cut + 1;
		}
	}
	return at > skip ? (int)(at - skip) : 0;
}

/* ---- the contract screen ---- */

/* Losses and the residual are always there; on a small terminal the providers are not. */
static int draw_contract(struct screen *s)
{
	int room = LINES / 3 < 8 ? 8 : LINES / 3, y;
	char *text, *providers, *end;

	if (!s->r) {
		put(0, 0, COLS, "waiting for the first picture");
		return 1;
	}
	s->out.width = COLS;
	text = out_contract(s->r, &s->out);
	providers = text && LINES < 30 ? strstr(text, "\n  Linux ") : NULL;
	end = providers ? strchr(providers + 1, '\n') : NULL;
	if (end)
		memmove(providers, end, strlen(end) + 1);
	y = text ? draw_text(text, 0, room, 0) : 0;
	free(text);
	if (y > room) {
		y = room;
		mvhline(y - 1, 0, ' ', COLS);
		put(y - 1, 0, COLS, "  ... there is more: w writes all of it to a file");
	}
	return y;
}

/* ---- rows ---- */

static int shown_columns(const struct screen *s)
{
	int fit = (COLS - SPARK - 2 - OWNER_MIN) / CELL - (COLS >= WITH_RATE), n = 0;

	while (s->columns[n] >= 0 && n < (fit < 1 ? 1 : fit))
		n++;
	return n;
}

static void draw_heads(const struct screen *s, int y, int n)
{
	char head[32];
	int i, x;

	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	for (i = 0; i < n; i++) {
		snprintf(head, sizeof(head), "%s%s", cost_columns[s->columns[i]].header,
			 s->columns[i] == s->out.column ? "*" : "");
		x = (i + 1) * CELL - (int)strlen(head) - 1;
		put(y, x < 0 ? 0 : x, CELL, head);
	}
	x = n * CELL;
	if (COLS >= WITH_RATE) {
		put(y, x + CELL - 9, CELL, "A SECOND");
		x += CELL;
	}
	put(y, x, SPARK, "TREND");
	put(y, x + SPARK + 1, COLS, "OWNER");
	attroff(A_REVERSE);
}

static char mark_of(const struct cost *c)
{
	return c->sampled ? '~' : cost_is_open(c) ? '?' : ' ';
}

static int trend(const struct past *p)
{
	s64 change = p->n > 1 ? p->value[p->n - 1] - p->value[p->n - 2] : 0;

	return change > 0 ? GREW : change < 0 ? SHRANK : PLAIN;
}

/* What the sorted column changed by between the latest two pictures, in a second. */
static void draw_rate(const struct screen *s, int y, int x, const struct past *p)
{
	u64 window = s->r->live.window_ns;
	char cell[64] = "-";
	double rate;

	if (p->n > 1 && window) {
		rate = (double)(p->value[p->n - 1] - p->value[p->n - 2]) * 1e9 / (double)window;
		snprintf(cell, sizeof(cell), "%s%s", rate > 0 ? "+" : "",
			 out_amount(&s->out, (s64)rate));
		if (strcmp(cost_columns[s->out.column].unit, "B"))
			snprintf(cell, sizeof(cell), "%+.0f", rate);
	}
	put(y, x + CELL - 1 - (int)strlen(cell), CELL, cell);
}

/* Of all rows, also of those that a filter hides. */
static void draw_total(const struct screen *s, int y, int n)
{
	char cell[64];
	int i;

	attron(A_BOLD);
	for (i = 0; i < n; i++) {
		const struct cost *c = &s->r->total[s->columns[i]];

		snprintf(cell, sizeof(cell), "%12s%c",
			 c->known ? out_number(&s->out, s->columns[i], cost_value(c)) : "-",
			 c->known ? mark_of(c) : ' ');
		put(y, i * CELL, CELL, cell);
	}
	put(y, n * CELL + (COLS >= WITH_RATE ? CELL : 0) + SPARK + 1, COLS, "TOTAL");
	attroff(A_BOLD);
}

static void draw_row(struct screen *s, int y, const struct row *row, int n, int many)
{
	char cell[64], comm[32], *owner = out_owner_text(row);
	int i, x = n * CELL;
	struct past past;

	for (i = 0; i < n; i++) {
		const struct cost *c = &row->cost[s->columns[i]];

		snprintf(cell, sizeof(cell), "%12s%c",
			 c->known ? out_number(&s->out, s->columns[i], cost_value(c)) : "-",
			 c->known ? mark_of(c) : ' ');
		put(y, i * CELL, CELL, cell);
	}
	history_get(s->history, row, &past);
	if (COLS >= WITH_RATE) {
		draw_rate(s, y, x, &past);
		x += CELL;
	}
	history_sparkline(&past, s->utf8, SPARK, cell, sizeof(cell));
	colour(s, trend(&past), 1);
	put(y, x, SPARK, cell);
	colour(s, trend(&past), 0);
	x += SPARK + 1;
	if (many && row->kind != ORIGIN_PROCESS && (row->pid || row->several)) {
		if (row->several)
			snprintf(cell, sizeof(cell), "several: ");
		else
			snprintf(cell, sizeof(cell),
				 "%s (%u): ", text_copy(comm, sizeof(comm), row->comm), row->pid);
		x += put(y, x, COLS - x, cell);
	}
	put(y, x, COLS - x, owner ? owner : "");
	free(owner);
}

static void draw_rows(struct screen *s, int y, int height)
{
	int n = shown_columns(s), many = join_is_many(s->r) && strcmp(s->out.group, "process");
	size_t i;

	draw_heads(s, y++, n);
	/* Not at the cost of the rows. */
	if (height > 4) {
		draw_total(s, y++, n);
		height--;
	}
	s->page = height > 1 ? (size_t)height - 1 : 1;
	if (s->selected >= s->r->nr_rows)
		s->selected = s->r->nr_rows ? s->r->nr_rows - 1 : 0;
	if (s->selected < s->first)
		s->first = s->selected;
	if (s->selected >= s->first + s->page)
		s->first = s->selected - s->page + 1;
	for (i = s->first; i < s->r->nr_rows && i < s->first + s->page; i++, y++) {
		if (i == s->selected)
			attron(A_REVERSE);
		if (i == s->selected)
			mvhline(y, 0, ' ', COLS);
		draw_row(s, y, &s->r->rows[i], n, many);
		attroff(A_REVERSE);
	}
	if (!s->r->nr_rows)
		put(y, 0, COLS, s->filter ? "no row matches the filter" : "no rows yet");
}

/* ---- panes ---- */

static void draw_detail(struct screen *s, int y, int height)
{
	char *text;

	mvhline(y, 0, s->utf8 ? ACS_HLINE : '-', COLS);
	if (s->selected >= s->r->nr_rows)
		return;
	text = screen_detail(s, &s->r->rows[s->selected]);
	if (text)
		draw_text(text, y + 1, height - 1, s->detail_first);
	free(text);
}

static void draw_help(int y, int height)
{
	char text[] =
		"up, down, page keys, j, k   choose a row\n"
		"Enter, d    the row: why it is resident, its numbers, history and stack; [ and ] "
		"scroll it\n"
		"left, right, < >   sort by the column to the left or right; 1 to 9 by its number\n"
		"s    sort by a column, by its name\n"
		"c    choose the columns, by their names; remembered, none: the usual ones\n"
		"v    next view: usual, growth, waste, pressure, numa\n"
		"g    next grouping: stack, site, function, file, mapping,\n"
		"     process, node, resource\n"
		"f, /    filter rows: resident > 1M and function ~ cache; empty shows all\n"
		"p, space    pause, and go on\n"
		"b    plain bytes\n"
		"m    mark: a text at this time, in the lines on top\n"
		"w    write the table, all rows, to a file in this folder\n"
		"h, ?    this page; q quits\n"
		"An exact number has no mark; ? inferred, ~ sampled, - no evidence. TREND is the "
		"sorted\n"
		"column in the latest pictures.\n";

	draw_text(text, y, height, 0);
}

static void draw_status(const struct screen *s)
{
	static const char *const asks[] = {"",
					   "sort by column: ", "filter: ", "mark: ", "columns: "};
	char line[2 * TEXT_MAX];

	if (s->prompt)
		snprintf(line, sizeof(line), "%s%s", asks[s->prompt], s->typed);
	else if (s->message[0])
		snprintf(line, sizeof(line), "%s", s->message);
	else
		snprintf(
			line, sizeof(line),
			"%sh help  q quit  v view: %s  g group: %s  s sort  f filter  Enter detail",
			s->paused ? "PAUSED  " : "",
			s->view < 0 ? "usual" : columns_view_name(s->view), s->out.group);
	attron(A_BOLD);
	move(LINES - 1, put(LINES - 1, 0, COLS - 1, line));
	attroff(A_BOLD);
	curs_set(s->prompt ? 1 : 0);
}

void screen_draw(struct screen *s)
{
	int y, bottom, detail;

	erase();
	y = draw_contract(s);
	bottom = LINES - 1;
	if (s->help) {
		draw_help(y, bottom - y);
	} else if (s->r) {
		detail = s->detail ? (bottom - y) / 2 : 0;
		draw_rows(s, y, bottom - y - detail);
		if (detail)
			draw_detail(s, bottom - detail, detail);
	}
	draw_status(s);
	refresh();
	s->dirty = 0;
}
