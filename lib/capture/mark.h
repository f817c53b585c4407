/* SPDX-License-Identifier: GPL-2.0-only
 * Markers from the operator into a running recording: a datagram socket in the abstract namespace,
 * named by the recorder's pid, so that a killed recorder leaves nothing. The kernel says who sends:
 * only the recorder's own user and root are heard. */
#ifndef MP_CAPTURE_MARK_H
#define MP_CAPTURE_MARK_H

#include <stddef.h>
#include <sys/types.h>
#include "bpf/shared/event.h"

#define MARK_TEXT_MAX 256

/* NULL when text can be a marker, else what is wrong with it: empty, too long, control characters,
 * no UTF-8. */
const char *mark_refused(const char *text, size_t len);

/* ---- the recorder's side ---- */

struct mark_port;

/* path: the file recorded to, NULL for none. */
int mark_open(const char *path, struct mark_port **ret_m);
/* Answers what has come. put writes the marker and everything before it to where it stays. Never
 * waits. Returns what put returned. */
int mark_poll(struct mark_port *m, int (*put)(void *ctx, const char *text, u64 *ret_time_ns),
	      void *ctx);
void mark_close(struct mark_port **m);

/* ---- the sender's side ---- */

struct recording_seen {
	pid_t pid;
	char path[4096]; /* "" none */
};

/* Recordings that run in this network namespace and are ours to mark. Returns how many there are,
 * of which at most max were stored, or -errno. *ret_others: those of other users, or that do not
 * answer. */
int mark_list(struct recording_seen *ret, int max, int *ret_others);
/* 0: the marker is in, at *ret_time_ns after the start. -EACCES: not ours; -ECONNREFUSED: it ended;
 * -ETIMEDOUT: no answer; -EFBIG, -ENOSPC...: what kept the recorder from writing it. */
int mark_send(pid_t pid, const char *text, u64 *ret_time_ns);

#endif
