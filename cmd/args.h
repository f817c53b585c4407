/* SPDX-License-Identifier: GPL-2.0-only
 * Arguments that several verbs read alike. */
#ifndef MP_CMD_ARGS_H
#define MP_CMD_ARGS_H

#include "lib/join/join.h"
#include "lib/trace/rules.h"

/* A whole number. 0, or -1 for anything else. */
int parse_count(const char *text, unsigned long *ret);
/* "200ms", "5s", "5" (seconds), "1m", "2h" in ns; 0 for anything else. */
u64 parse_duration(const char *text);
/* Bytes: "4096", "64K", "1.5G", "2MiB"; 0 for anything else. */
u64 parse_size(const char *text);
/* Where a trace is read from: a path, or for "-" the standard input, kept in memory when that is a
 * pipe. What input_open() returns lives as long as the input. 0 or -errno. */
struct input {
	int fd; /* -1: the path itself */
	char memory[32];
};
int input_open(struct input *in, const char *path, const char **ret_path);
void input_close(struct input *in);
/* join_file() of one. */
int input_join(const char *path, enum owner_mode owner, struct report **ret_r);

/* --names PATH. 0, or an exit status after a message. */
int names_option(const char *verb, const char *path, struct rules *ret);

#endif
