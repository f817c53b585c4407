/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/top/remember.h"

const char *columns_of(const char *list, int *ret)
{
	static char bad[64];
	char copy[1024], *name, *save;
	const char *near;
	int n = 0, c;

	snprintf(copy, sizeof(copy), "%s", list);
	for (name = strtok_r(copy, ", ", &save); name; name = strtok_r(NULL, ", ", &save)) {
		c = cost_find(name, &near);
		if (c < 0) {
			snprintf(bad, sizeof(bad), "%s", name);
			return bad;
		}
		if (n < COST_MAX)
			ret[n++] = c;
	}
	ret[n] = -1;
	return NULL;
}

/* 0 or -ENOENT: there is no home. */
static int folder(char *buf, size_t len)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		snprintf(buf, len, "%s", config);
	else if (home && *home == '/')
		snprintf(buf, len, "%s/.config", home);
	else
		return -ENOENT;
	return 0;
}

void remembered(char *buf, size_t len)
{
	char base[PATH_MAX - 32], path[PATH_MAX];
	FILE *f = NULL;

	buf[0] = 0;
	if (folder(base, sizeof(base)))
		return;
	snprintf(path, sizeof(path), "%s/memprov/top-columns", base);
	f = fopen(path, "re");
	if (f && fgets(buf, (int)len, f))
		buf[strcspn(buf, "\n")] = 0;
	if (f)
		fclose(f);
}

int remember(const char *list)
{
	char base[PATH_MAX - 32], path[PATH_MAX];
	int err = folder(base, sizeof(base)), fd;
	FILE *f;

	if (err)
		return err;
	mkdir(base, 0700);
	snprintf(path, sizeof(path), "%s/memprov", base);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/memprov/top-columns", base);
	if (!*list)
		return unlink(path) && errno != ENOENT ? -errno : 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	fprintf(f, "%s\n", list);
	return fclose(f) ? -errno : 0;
}
