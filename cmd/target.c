/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "cmd/target.h"
#include "cmd/user.h"
#include "lib/capture/group.h"
#include "lib/capture/privilege.h"
#include "lib/capture/recorder.h"
#include "lib/capture/snapshot.h"
#include "lib/text/text.h"

enum way { WAY_PID = 1, WAY_COMM = 2, WAY_CGROUP = 4, WAY_ALL = 8 };

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
	/* One without processes may have page cache yet. */
	return err ? fail(verb, "--cgroup %s: cannot list its processes: %s", spec, strerror(-err))
		   : 0;
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
		t->ways |= WAY_PID;
		if (parse_pids(t, arg))
			return misuse(verb, "-p %s: not a list of process ids", arg);
		return 0;
	case 'c':
		t->ways |= WAY_COMM;
		add_comm(t, arg);
		if (!t->nr_pids)
			return fail(verb, "no process named %s: check with ps -e", arg);
		return 0;
	case 'g':
		t->ways |= WAY_CGROUP;
		t->cgroup = arg;
		t->tree = 1;
		return add_cgroup(t, verb, arg);
	case 'a':
		t->ways |= WAY_ALL;
		add_comm(t, NULL);
		t->tree = 1;
		return 0;
	case 't':
		t->tree = 1;
		return 0;
	case 'u':
		t->user_name = arg;
		return 0;
	case 'N':
		return names_option(verb, arg, &t->names);
	default:
		return -1;
	}
}

int target_one(const struct target *t, const char *verb, const char *also, int given)
{
	int n = __builtin_popcount(t->ways) + (t->argv != NULL) + given;

	if (n == 1)
		return 0;
	return misuse(verb,
		      n ? "choose one of -p, --comm, --cgroup, -a%s%s and a command"
			: "whose memory? Choose -p, --comm, --cgroup, -a%s%s or a command",
		      also ? ", " : "", also ? also : "");
}

void target_process(pid_t pid, char *buf, size_t len)
{
	char path[64], comm[64] = "?", plain[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(comm, sizeof(comm), f))
		comm[strcspn(comm, "\n")] = 0;
	if (f)
		fclose(f);
	snprintf(buf, len, "%s (%d)", text_copy(plain, sizeof(plain), comm), (int)pid);
}

void target_name(const struct target *t, char *buf, size_t len)
{
	char who[96];

	if (t->argv)
		snprintf(who, sizeof(who), "%s", t->argv[0]);
	else if (t->nr_pids == 1)
		target_process(t->pids[0], who, sizeof(who));
	else
		snprintf(who, sizeof(who), "%d processes", t->nr_pids);
	if (t->cgroup)
		snprintf(buf, len, "cgroup %s, %s", t->cgroup, who);
	else
		snprintf(buf, len, "%s", who);
}

void target_refused(const struct recorder *r, const char *verb)
{
	char who[96];
	pid_t first;
	unsigned int n = recorder_refused(r, &first);

	if (!n)
		return;
	target_process(first, who, sizeof(who));
	if (privilege_missing(NEED_PTRACE))
		fail(verb,
		     "%u of the processes are of another user: CAP_SYS_PTRACE missing: run as root "
		     "or grant it",
		     n);
	else if (n == 1)
		fail(verb, "the kernel lets nobody look into %s: left out", who);
	else
		fail(verb, "the kernel lets nobody look into %s and %u more: left out", who, n - 1);
}

/* The process that a thread is of; 0 unknown. */
static pid_t leader_of(pid_t tid)
{
	char path[64], line[128];
	int tgid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &tgid) == 1)
			break;
	if (f)
		fclose(f);
	return tgid;
}

/* Of those that were found by other means than their number some have ended since. */
static void drop_ended(struct target *t)
{
	int i, n = 0;

	for (i = 0; i < t->nr_pids; i++)
		if (snapshot_thread(t->pids[i]) > 0)
			t->pids[n++] = t->pids[i];
	if (n)
		t->nr_pids = n;
}

int target_check(struct target *t, const char *verb)
{
	char who[96];
	pid_t leader;
	int i, has;

	if (!(t->ways & WAY_PID))
		drop_ended(t);
	for (i = 0; i < t->nr_pids; i++) {
		leader = leader_of(t->pids[i]);
		if (leader && leader != t->pids[i]) {
			target_process(leader, who, sizeof(who));
			return fail(verb, "%d is a thread of %s: use -p %d", (int)t->pids[i], who,
				    (int)leader);
		}
		has = snapshot_thread(t->pids[i]);
		/* One of many that ended this moment is passed over when it is to be followed. */
		if (has <= 0 && !(t->ways & WAY_PID) && t->nr_pids > 1)
			continue;
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
