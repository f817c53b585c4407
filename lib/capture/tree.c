/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/capture/tree.h"

/* The name in stat may hold anything, a bracket as well. */
pid_t tree_parent(pid_t pid)
{
	char path[32], line[512], *p;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (!p || sscanf(p, ") %*c %d", &parent) != 1)
		parent = 0;
	fclose(f);
	return parent;
}

int tree_same_memory(pid_t pid, pid_t other)
{
	return !syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0);
}

/* How many were new, or what fn returned. */
static int look(int (*is_followed)(void *ctx, pid_t pid), int (*fn)(void *ctx, pid_t pid),
		void *ctx)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int found = 0, err = 0;

	while (dir && !err && (d = readdir(dir))) {
		pid_t pid = (pid_t)atol(d->d_name), parent;

		if (!isdigit((unsigned char)d->d_name[0]) || is_followed(ctx, pid))
			continue;
		parent = tree_parent(pid);
		if (parent <= 0 || !is_followed(ctx, parent))
			continue;
		err = fn(ctx, pid);
		found += !err && is_followed(ctx, pid);
	}
	if (dir)
		closedir(dir);
	return err ? err : found;
}

int tree_each(int (*is_followed)(void *ctx, pid_t pid), int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	int found;

	do
		found = look(is_followed, fn, ctx);
	while (found > 0);
	return found;
}
