/* SPDX-License-Identifier: GPL-2.0-only
 * The verbs. Each returns the process's exit status (DESIGN: 0 ok, 1 failure, 2 usage, 3 loss). */
#ifndef MP_CMD_CMD_H
#define MP_CMD_CMD_H

#include <stdio.h>

#define EXIT_USAGE 2
#define EXIT_LOSS  3

int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_mark(int argc, char **argv);
int cmd_features(int argc, char **argv);
int cmd_help(int argc, char **argv);

/* One line on stderr: memprov: verb: text; verb may be NULL. Returns 1. */
int fail(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for what was asked wrongly, with the verb's usage behind it. Returns EXIT_USAGE. */
int misuse(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for a verb that there is not. */
int misuse_verb(const char *word);
/* getopt(3) has complained about an option: which one was meant, if that can be told, and the
 * verb's usage. Returns EXIT_USAGE. */
struct option;
int bad_option(const char *verb, const struct option *longs, char **argv);
/* How the verb (NULL: each) is used. Returns EXIT_USAGE. */
int usage(FILE *f, const char *verb);
/* Pictures need what this process lacks. Returns 1. */
int fail_frames(const char *verb);
/* Why a trace could not be read, in words. Returns 1. */
int fail_trace(const char *verb, const char *path, int err);

#endif
