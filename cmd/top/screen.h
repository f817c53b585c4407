/* SPDX-License-Identifier: GPL-2.0-only
 * The screen of top: a report, keys to look at it, a pane for one row. It draws and decides nothing
 * about the recording: what it cannot do itself it asks its owner for. */
#ifndef MP_CMD_TOP_SCREEN_H
#define MP_CMD_TOP_SCREEN_H

#include "lib/out/out.h"

struct screen;

enum screen_event {
	SCREEN_NOTHING,
	SCREEN_FRESH, /* show a report of now: what is shown was grouped or filtered away */
	SCREEN_MARK, /* screen_mark() is to be set */
	SCREEN_QUIT,
};

/* o: how it begins; read once. 0, -ENOTTY when the terminal cannot be drawn on, -ENOMEM. */
int screen_open(const struct out_opts *o, int by_given, struct screen **ret_s);
/* Takes r, also on failure. is_new: of a picture that was not shown yet. */
int screen_show(struct screen *s, struct report *r, int is_new);
/* Does what was typed, without waiting; draws when that changed anything. */
enum screen_event screen_keys(struct screen *s);
/* Waits for a key, or a signal. */
void screen_wait(void);
int screen_is_paused(const struct screen *s);
const char *screen_mark(const struct screen *s);
/* A line below the rows until the next key. */
void screen_say(struct screen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void screen_close(struct screen **s);

#endif
