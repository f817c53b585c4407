/* SPDX-License-Identifier: GPL-2.0-only
 * A session and its unwinder together: what the one sees the other is told. */
#ifndef MP_CAPTURE_SUPPLY_H
#define MP_CAPTURE_SUPPLY_H

struct session;
struct spawn_user;
struct unwinder;

/* 0 or -errno. */
int supply_open(struct session *s, struct unwinder **ret_u);
/* Whenever the rings were drained. */
int supply_turn(struct session *s, struct unwinder *u);
/* The tables of what the targets execute, before anything is recorded; what takes longer than some
 * seconds comes later. argv: CMD that is about to be started as user, NULL: none. */
int supply_settle(struct session *s, struct unwinder *u, char *const *argv,
		  const struct spawn_user *user);

#endif
