/* SPDX-License-Identifier: GPL-2.0-only
 * Keeps the unwinder in BPF supplied: which files the spaces execute, a table for each of them, and
 * where they are mapped. Code that is mapped while recording is picked up as its events come in. */
#ifndef MP_CAPTURE_UNWINDER_H
#define MP_CAPTURE_UNWINDER_H

#include <sys/types.h>
#include "bpf/shared/event.h"
#include "lib/capture/banks.h"

struct unwinder;

int unwinder_new(const struct bank_fds *fds, struct unwinder **ret_u);
void unwinder_free(struct unwinder **u);
/* Takes note of a SPACE, SPACE_END, MAP or UNMAP. 0 or -ENOMEM. */
int unwinder_feed(struct unwinder *u, const struct mp_hdr *rec);
/* This file will be executed: its table is built beforehand. */
void unwinder_expect(struct unwinder *u, const char *path);
/* Does what can be done without waiting. 0 or -errno. */
int unwinder_turn(struct unwinder *u);
/* Is a table being built? */
int unwinder_busy(const struct unwinder *u);
/* Readable when a turn is due, -1: none. */
int unwinder_fd(const struct unwinder *u);
/* Files that have no table for want of room. */
u64 unwinder_left_out(const struct unwinder *u);
u64 unwinder_bytes(const struct unwinder *u); /* kernel memory of the tables */

#endif
