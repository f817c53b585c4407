/* SPDX-License-Identifier: GPL-2.0-only
 * Whom to follow: the options that record and top share. */
#ifndef MP_CMD_TARGET_H
#define MP_CMD_TARGET_H

#include <getopt.h>
#include <sys/types.h>
#include "lib/capture/spawn.h"
#include "lib/trace/rules.h"

#define TARGET_PIDS_MAX 2048

struct group;

struct target {
	pid_t pids[TARGET_PIDS_MAX];
	int nr_pids, tree;
	unsigned int ways; /* bits: how they were chosen, of -p, --comm, --cgroup, -a */
	const char *cgroup; /* as it was named */
	struct group *group; /* --cgroup; the process keeps it to its end */
	char **argv; /* CMD; NULL when pids are followed */
	const char *user_name; /* --user */
	struct rules names; /* --names */
	struct spawn_user user; /* whom CMD runs as: set by target_check */
};

/* Getopt's letters and rows of these options. */
#define TARGET_SHORT "p:a"
/* clang-format off */
#define TARGET_LONG						\
	{"pid", required_argument, NULL, 'p'},			\
	{"comm", required_argument, NULL, 'c'},			\
	{"cgroup", required_argument, NULL, 'g'},		\
	{"all", no_argument, NULL, 'a'},			\
	{"tree", no_argument, NULL, 't'},			\
	{"user", required_argument, NULL, 'u'},			\
	{"names", required_argument, NULL, 'N'}
/* clang-format on */

/* The four ways and CMD exclude each other. 0, or an exit status after a message; also: one more
 * that the verb has, or NULL, and whether it was given. */
int target_one(const struct target *t, const char *verb, const char *also, int given);
/* Takes option c. 0: taken, -1: not one of these, else an exit status after a message. */
int target_option(struct target *t, const char *verb, int c, const char *arg);
/* The targets in a few words: "redis-server (4711)", "2 processes"... */
void target_name(const struct target *t, char *buf, size_t len);
/* "comm (pid)" of a process of now. */
void target_process(pid_t pid, char *buf, size_t len);
struct recorder;
/* A line on those that the kernel lets nobody look into. */
void target_refused(const struct recorder *r, const char *verb);
/* Is every process there, with memory of its own, or the user that CMD is to run as? 0, else an
 * exit status after a message. */
int target_check(struct target *t, const char *verb);

#endif
