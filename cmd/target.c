/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/target.h"
#include "cmd/user.h"
#include "lib/capture/group.h"
#include "lib/capture/snapshot.h"

static int parse_pids(struct target *t, const char *text)
{
	char *end;

	for (; *text; text = *end ? end + 1 : end) {
		long v = strtol(text, &end, 10);

		int i;

		if (end == text || (*end && (*end != ',' || !end[1])) || v <= 0 || v > 1 << 22 ||
		    t->nr_pids == TARGET_PIDS_MAX)
			return -1;
		for (i = 0; i < t->nr_pids && t->pids[i] != v; i++)
			;
		if (i == t->nr_pids)
			t->pids[t->nr_pids++] = (pid_t)v;
	}
	return 0;
}

static int add_pid(void *ctx, pid_t pid)
{
	struct target *t = ctx;

	if (t->nr_pids < TARGET_PIDS_MAX)
		t->pids[t->nr_pids++] = pid;
	return 0;
}

/* Every process of a cgroup and of those below it. */
static int add_cgroup(struct target *t, const char *verb, const char *spec)
{
	char msg[4 * 4096];
	int err;

	if (t->group)
		return fail(verb, "--cgroup %s: one group at a time: name a common parent", spec);
	err = group_open(spec, msg, sizeof(msg), &t->group);
	if (err)
		return fail(verb, "%s", err == -ENOMEM ? "out of memory" : msg);
	err = group_each(t->group, add_pid, t);
	if (err)
		return fail(verb, "--cgroup %s: cannot list its processes: %s", spec,
			    strerror(-err));
	return t->nr_pids ? 0
			  : fail(verb,
				 "--cgroup %s: no process with memory in it: give a group "
				 "that has some",
				 spec);
}

/* comm NULL: every process that has memory of its own. */
static void add_comm(struct target *t, const char *comm)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	char path[300], have[64];

	while (dir && (d = readdir(dir))) {
		FILE *f;

		if (!isdigit((unsigned char)d->d_name[0]) || t->nr_pids == TARGET_PIDS_MAX)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", d->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(have, sizeof(have), f)) {
			have[strcspn(have, "\n")] = 0;
			if ((comm ? !strcmp(have, comm)
				  : snapshot_thread((pid_t)atol(d->d_name)) > 0) &&
			    atol(d->d_name) != getpid())
				t->pids[t->nr_pids++] = (pid_t)atol(d->d_name);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
}

int target_option(struct target *t, const char *verb, int c, const char *arg)
{
	switch (c) {
	case 'p':
		if (parse_pids(t, arg)) {
			fail(verb, "-p %s: not a list of process ids", arg);
			return EXIT_USAGE;
		}
		return 0;
	case 'c':
		add_comm(t, arg);
		if (!t->nr_pids)
			return fail(verb, "no process named %s: check with ps -e", arg);
		return 0;
	case 'g':
		t->tree = 1;
		return add_cgroup(t, verb, arg);
	case 'a':
		add_comm(t, NULL);
		t->tree = 1;
		return 0;
	case 't':
		t->tree = 1;
		return 0;
	case 'u':
		t->user_name = arg;
		return 0;
	default:
		return -1;
	}
}

int target_check(struct target *t, const char *verb)
{
	int i, has;

	for (i = 0; i < t->nr_pids; i++) {
		has = snapshot_thread(t->pids[i]);
		if (has < 0)
			return fail(verb, "no process %d: check the PID with ps", (int)t->pids[i]);
		if (!has)
			return fail(verb,
				    "process %d has no memory of its own: a kernel thread or "
				    "already exited",
				    (int)t->pids[i]);
	}
	return t->argv ? user_find(verb, t->user_name, &t->user) : 0;
}
