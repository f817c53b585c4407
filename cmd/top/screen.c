/* SPDX-License-Identifier: GPL-2.0-only
 * State and keys of the screen. */
#define _GNU_SOURCE
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cmd/columns.h"
#include "cmd/top/remember.h"
#include "cmd/top/state.h"

/* ---- life ---- */

static void choose_terminal(struct screen *s)
{
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(25);
	s->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	s->colour = has_colors() && !getenv("NO_COLOR");
	if (s->colour) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_GREEN, -1);
	}
}

/* Those that were chosen, else the usual ones; with the one that is sorted by among them. */
static void no_view(struct screen *s, int by)
{
	int n;

	if (s->chosen[0] < 0) {
		columns_pick("top", NULL, by, s->columns);
		return;
	}
	memcpy(s->columns, s->chosen, sizeof(s->columns));
	for (n = 0; s->columns[n] >= 0; n++)
		if (s->columns[n] == by)
			return;
	memmove(s->columns + 1, s->columns, (size_t)(n + 1) * sizeof(*s->columns));
	s->columns[0] = by;
}

int screen_open(const struct out_opts *o, int by_given, struct screen **ret_s)
{
	struct screen *s = calloc(1, sizeof(*s));
	int i;

	if (!s || history_new(&s->history)) {
		free(s);
		return -ENOMEM;
	}
	setlocale(LC_CTYPE, "");
	s->out = *o;
	for (i = 0; o->columns[i] >= 0; i++)
		s->columns[i] = o->columns[i];
	s->columns[i] = -1;
	s->out.columns = s->columns;
	while (join_groups[s->group + 1] && strcmp(join_groups[s->group], o->group))
		s->group++;
	s->view = -1;
	s->by_given = by_given;
	remembered(s->typed, sizeof(s->typed));
	if (columns_of(s->typed, s->chosen))
		s->chosen[0] = -1;
	s->typed[0] = 0;
	if (s->chosen[0] >= 0)
		no_view(s, s->out.column);
	s->terminal = newterm(NULL, stdout, stdin);
	if (!s->terminal) {
		history_free(&s->history);
		free(s);
		return -ENOTTY;
	}
	set_term(s->terminal);
	choose_terminal(s);
	screen_draw(s);
	*ret_s = s;
	return 0;
}

void screen_close(struct screen **s)
{
	if (!*s)
		return;
	endwin();
	delscreen((*s)->terminal);
	join_free(&(*s)->r);
	history_free(&(*s)->history);
	filter_free(&(*s)->filter);
	free(*s);
	*s = NULL;
}

/* ---- what is shown ---- */

static void key_of(const struct row *row, char *buf, size_t len)
{
	snprintf(buf, len, "%s@%u", row->id, row->pid);
}

/* The bar stays on its row, wherever that goes. */
static void follow_selected(struct screen *s)
{
	char key[48];
	size_t i;

	for (i = 0; s->selected_key[0] && i < s->r->nr_rows; i++) {
		key_of(&s->r->rows[i], key, sizeof(key));
		if (!strcmp(key, s->selected_key)) {
			s->selected = i;
			return;
		}
	}
}

static void keep_selected(struct screen *s)
{
	if (s->r && s->selected < s->r->nr_rows)
		key_of(&s->r->rows[s->selected], s->selected_key, sizeof(s->selected_key));
	/* The uppermost place is a place, not a row. */
	if (!s->selected)
		s->selected_key[0] = 0;
}

static int is_shown(const struct screen *s, int column)
{
	const int *c = s->columns;

	while (*c >= 0 && *c != column)
		c++;
	return *c >= 0;
}

/* Columns keep their places as long as the one that is sorted by is among them. */
static void choose_view(struct screen *s)
{
	int first;

	if (s->view >= 0) {
		first = columns_view("top", s->r, columns_view_name(s->view), s->columns);
		if (!s->by_given)
			s->out.column = first;
	} else if (!is_shown(s, s->out.column)) {
		no_view(s, s->out.column);
	}
}

static void sort(struct screen *s)
{
	if (!s->r)
		return;
	join_sort(s->r, s->out.column);
	follow_selected(s);
}

int screen_show(struct screen *s, struct report *r, int is_new)
{
	int err = 0;

	if (s->filter)
		filter_report(s->filter, r);
	err = join_group(r, s->out.group);
	if (err) {
		join_free(&r);
		return err;
	}
	join_free(&s->r);
	s->r = r;
	choose_view(s);
	sort(s);
	if (is_new)
		err = history_add(s->history, r, s->out.column, s->out.group);
	screen_draw(s);
	return err;
}

void screen_say(struct screen *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->message, sizeof(s->message), fmt, ap);
	va_end(ap);
	s->dirty = 1;
}

int screen_is_paused(const struct screen *s)
{
	return s->paused;
}

const char *screen_mark(const struct screen *s)
{
	return s->typed;
}

void screen_wait(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	poll(&in, 1, -1);
}

/* ---- keys ---- */

static void sorted_by(struct screen *s, int column)
{
	int changed = column != s->out.column;

	s->out.column = column;
	s->by_given = 1;
	sort(s);
	if (s->r && changed)
		history_add(s->history, s->r, column, s->out.group);
}

static void sort_by(struct screen *s, int column)
{
	if (s->view < 0 && !is_shown(s, column))
		no_view(s, column);
	sorted_by(s, column);
}

/* The column beside the one that is sorted by. */
static void sort_beside(struct screen *s, int step)
{
	int i, n;

	for (n = 0; s->columns[n] >= 0; n++)
		;
	for (i = 0; i < n && s->columns[i] != s->out.column; i++)
		;
	sorted_by(s, s->columns[(i + step + n) % n]);
}

static void sort_number(struct screen *s, int number)
{
	int i;

	for (i = 0; i < number && s->columns[i] >= 0; i++)
		;
	if (s->columns[i] >= 0)
		sorted_by(s, s->columns[i]);
}

/* All rows as report prints them, to a file that was not there. */
static void dump(struct screen *s)
{
	struct out_opts o = s->out;
	char name[64];
	time_t now = time(NULL);
	struct tm tm;
	FILE *f;
	int fd, err;

	if (!s->r)
		return;
	localtime_r(&now, &tm);
	strftime(name, sizeof(name), "memprov-top-%Y%m%d-%H%M%S.txt", &tm);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		screen_say(s, "cannot create %s: %s", name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return;
	}
	o.rows = 0;
	err = out_table(f, s->r, &o);
	if (fclose(f) && !err)
		err = -errno;
	if (err)
		screen_say(s, "cannot write %s: %s", name, strerror(-err));
	else
		screen_say(s, "wrote %s", name);
}

static enum screen_event answer_filter(struct screen *s)
{
	struct filter *f = NULL;
	char msg[TEXT_MAX];

	if (s->typed[strspn(s->typed, " ")] && filter_parse(s->typed, &f, msg, sizeof(msg))) {
		screen_say(s, "filter: %s", msg);
		return SCREEN_NOTHING;
	}
	filter_free(&s->filter);
	s->filter = f;
	memcpy(s->filter_text, s->typed, sizeof(s->filter_text));
	s->out.filter = f ? s->filter_text : NULL;
	s->first = s->selected = 0;
	return SCREEN_FRESH;
}

static void answer_sort(struct screen *s)
{
	const char *near = "resident";
	int c = cost_find(s->typed, &near);

	if (c < 0)
		screen_say(s, "no column '%s': the nearest is %s", s->typed, near);
	else if (s->r && cost_absent(s->r, (enum cost_id)c))
		screen_say(s, "column %s is absent: %s", s->typed,
			   cost_absent(s->r, (enum cost_id)c));
	else
		sort_by(s, c);
}

static void answer_columns(struct screen *s)
{
	int columns[COST_MAX + 2];
	const char *bad = columns_of(s->typed, columns);
	int err;

	if (bad) {
		screen_say(s, "no column '%s': memprov report --columns help lists all", bad);
		return;
	}
	memcpy(s->chosen, columns, sizeof(s->chosen));
	s->view = -1;
	no_view(s, s->out.column);
	err = remember(s->typed);
	if (err)
		screen_say(s, "these columns are not remembered: %s", strerror(-err));
}

static enum screen_event answer(struct screen *s)
{
	enum prompt p = s->prompt;

	s->prompt = PROMPT_NONE;
	if (p == PROMPT_FILTER)
		return answer_filter(s);
	if (p == PROMPT_MARK)
		return s->typed[0] ? SCREEN_MARK : SCREEN_NOTHING;
	if (p == PROMPT_COLUMNS) {
		answer_columns(s);
		return SCREEN_NOTHING;
	}
	answer_sort(s);
	return SCREEN_NOTHING;
}

static enum screen_event type(struct screen *s, int key)
{
	size_t n = strlen(s->typed);

	switch (key) {
	case '\n':
	case '\r':
	case KEY_ENTER:
		return answer(s);
	case 27:
		s->prompt = PROMPT_NONE;
		break;
	case KEY_BACKSPACE:
	case 127:
	case 8:
		/* All bytes of a character. */
		while (n && ((unsigned char)s->typed[--n] & 0xc0) == 0x80)
			;
		s->typed[n] = 0;
		break;
	case 21: /* Ctrl-U */
		s->typed[0] = 0;
		break;
	default:
		if (key >= 32 && key < 256 && n + 1 < sizeof(s->typed)) {
			s->typed[n] = (char)key;
			s->typed[n + 1] = 0;
		}
	}
	return SCREEN_NOTHING;
}

static void ask(struct screen *s, enum prompt p)
{
	s->prompt = p;
	s->typed[0] = 0;
	if (p == PROMPT_FILTER && s->filter)
		memcpy(s->typed, s->filter_text, sizeof(s->typed));
}

static int move_bar(struct screen *s, int key)
{
	size_t n = s->r && s->r->nr_rows ? s->r->nr_rows - 1 : 0, at = s->selected;

	switch (key) {
	case KEY_UP:
	case 'k':
		at -= at > 0;
		break;
	case KEY_DOWN:
	case 'j':
		at++;
		break;
	case KEY_PPAGE:
		at = at > s->page ? at - s->page : 0;
		break;
	case KEY_NPAGE:
		at += s->page;
		break;
	case KEY_HOME:
		at = 0;
		break;
	case KEY_END:
		at = n;
		break;
	default:
		return 0;
	}
	s->selected = at < n ? at : n;
	s->detail_first = 0;
	keep_selected(s);
	return 1;
}

static int change(struct screen *s, int key)
{
	switch (key) {
	case KEY_LEFT:
	case '<':
		sort_beside(s, -1);
		break;
	case KEY_RIGHT:
	case '>':
		sort_beside(s, 1);
		break;
	case 'd':
	case '\n':
	case '\r':
	case KEY_ENTER:
		s->detail = !s->detail;
		s->detail_first = 0;
		break;
	case '[':
		s->detail_first -= s->detail_first > 0;
		break;
	case ']':
		s->detail_first++;
		break;
	case 'h':
	case '?':
		s->help = !s->help;
		break;
	case 27:
		s->help = s->detail = 0;
		break;
	case 'b':
		s->out.bytes = !s->out.bytes;
		break;
	case 'p':
	case ' ':
		s->paused = !s->paused;
		break;
	case 'w':
		dump(s);
		break;
	case 's':
		ask(s, PROMPT_SORT);
		break;
	case 'm':
		ask(s, PROMPT_MARK);
		break;
	case 'c':
		ask(s, PROMPT_COLUMNS);
		break;
	case 'f':
	case '/':
		ask(s, PROMPT_FILTER);
		break;
	default:
		if (key < '1' || key > '9')
			return 0;
		sort_number(s, key - '1');
	}
	return 1;
}

static enum screen_event press(struct screen *s, int key)
{
	s->dirty = 1;
	if (key == KEY_RESIZE)
		return SCREEN_NOTHING;
	if (s->prompt)
		return type(s, key);
	s->message[0] = 0;
	if (key == 'q' || key == KEY_F(10))
		return SCREEN_QUIT;
	if (key == 'v' && s->r) {
		s->view = columns_view_name(s->view + 1) ? s->view + 1 : -1;
		s->by_given = 0;
		if (s->view < 0) {
			s->out.column =
				s->r->total[COST_CHARGED].known ? COST_CHARGED : COST_RESIDENT;
			no_view(s, s->out.column);
		}
		choose_view(s);
		sort(s);
		history_add(s->history, s->r, s->out.column, s->out.group);
		return SCREEN_NOTHING;
	}
	if (key == 'g') {
		s->group = join_groups[s->group + 1] ? s->group + 1 : 0;
		s->out.group = join_groups[s->group];
		s->first = s->selected = 0;
		s->selected_key[0] = 0;
		return SCREEN_FRESH;
	}
	if (!move_bar(s, key) && !change(s, key))
		screen_say(s, "no such key: h shows all");
	return SCREEN_NOTHING;
}

enum screen_event screen_keys(struct screen *s)
{
	enum screen_event e = SCREEN_NOTHING;
	int key;

	while (e == SCREEN_NOTHING && (key = getch()) != ERR)
		e = press(s, key);
	if (s->dirty)
		screen_draw(s);
	return e;
}
