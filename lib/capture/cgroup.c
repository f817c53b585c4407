/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/capture/cgroup.h"

#define ID_DIGITS     12 /* what container engines print as the short id */
#define ROOT_INODE_V1 1 /* kernfs numbers the first folder of a hierarchy 1 */

static int say(char *msg, size_t len, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static int say(char *msg, size_t len, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, len, fmt, ap);
	va_end(ap);
	return err;
}

/* ---- mounts ---- */

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to = *s;
		}
	}
	*to = 0;
}

static int has_word(const char *list, const char *word, const char *separators)
{
	size_t n = strlen(word);

	while (*list) {
		size_t len = strcspn(list, separators);

		if (len == n && !strncmp(list, word, n))
			return 1;
		list += len;
		list += strspn(list, separators);
	}
	return 0;
}

static int v2_has_memory(const char *point)
{
	char path[CGROUP_PATH + 32], list[512] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.controllers", point);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (!fgets(list, sizeof(list), f))
		list[0] = 0;
	fclose(f);
	return has_word(list, "memory", " \n");
}

/* "ID PARENT DEV ROOT POINT OPTIONS [FIELD]... - TYPE SOURCE OPTIONS". 1 when it is the one. */
static int parse_mount(char *line, struct cgroup_mount *m)
{
	char *field[5], *rest, *type, *options, *save = NULL;
	int i, version;

	rest = strstr(line, " - ");
	if (!rest)
		return 0;
	*rest = 0;
	rest += 3;
	for (i = 0; i < 5; i++) {
		field[i] = strtok_r(i ? NULL : line, " ", &save);
		if (!field[i] || strlen(field[i]) >= CGROUP_PATH)
			return 0;
	}
	type = strtok_r(rest, " \n", &save);
	options = type && strtok_r(NULL, " \n", &save) ? strtok_r(NULL, " \n", &save) : NULL;
	if (!options)
		return 0;
	version = !strcmp(type, "cgroup") ? 1 : !strcmp(type, "cgroup2") ? 2 : 0;
	unescape(field[3]);
	unescape(field[4]);
	if (version == 1 ? !has_word(options, "memory", ",")
			 : version != 2 || !v2_has_memory(field[4]))
		return 0;
	m->version = version;
	snprintf(m->root, sizeof(m->root), "%s", field[3]);
	snprintf(m->point, sizeof(m->point), "%s", field[4]);
	return 1;
}

int cgroup_mount_find(const char *mountinfo, struct cgroup_mount *ret_m)
{
	FILE *f = fopen(mountinfo, "re");
	size_t cap = 0;
	char *line = NULL;
	int found = 0;

	if (!f)
		return -errno;
	while (!found && getline(&line, &cap, f) > 0)
		found = parse_mount(line, ret_m);
	free(line);
	fclose(f);
	return found ? 0 : -ENOENT;
}

/* ---- names ---- */

static int is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int has_file(const char *folder, const char *name)
{
	char path[CGROUP_PATH + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}

/* Fills *c for a folder that is known to exist. */
static int take(const char *spec, const char *folder, const struct cgroup_mount *m,
		struct cgroup *c, char *msg, size_t len)
{
	char *real = realpath(folder, NULL);
	size_t n = strlen(m->point);
	struct stat st;

	if (!real || strlen(real) >= sizeof(c->folder) || stat(real, &st)) {
		free(real);
		return say(msg, len, -ENOENT, "--cgroup %s: cannot read %s: check the folder", spec,
			   folder);
	}
	if (!has_file(real, "cgroup.procs") || !has_file(real, "memory.stat")) {
		free(real);
		return say(msg, len, -EINVAL,
			   "--cgroup %s: no memory cgroup (no cgroup.procs and memory.stat in it): "
			   "give a folder below %s",
			   spec, m->point);
	}
	memset(c, 0, sizeof(*c));
	snprintf(c->folder, sizeof(c->folder), "%s", real);
	snprintf(c->path, sizeof(c->path), "%s",
		 strncmp(real, m->point, n) ? real
		 : real[n]		    ? real + n
					    : "/");
	c->version = m->version;
	c->root = m->version == 1 ? st.st_ino == ROOT_INODE_V1 : !has_file(real, "memory.current");
	free(real);
	return 0;
}

/* The group of a process, as /proc/PID/cgroup says. */
static int of_pid(const char *spec, const struct cgroup_mount *m, struct cgroup *c, char *msg,
		  size_t len)
{
	char proc[64], folder[2 * CGROUP_PATH], *line = NULL, *end, *path = NULL, *list;
	long pid = strtol(spec + 3, &end, 10);
	size_t cap = 0, n;
	FILE *f;

	if (end == spec + 3 || *end || pid <= 0 || pid > 1 << 22)
		return say(msg, len, -EINVAL, "--cgroup %s: not a process id behind of:", spec);
	snprintf(proc, sizeof(proc), "/proc/%ld/cgroup", pid);
	f = fopen(proc, "re");
	if (!f)
		return say(msg, len, -ESRCH, "--cgroup %s: no process %ld: check the PID with ps",
			   spec, pid);
	while (!path && getline(&line, &cap, f) > 0) {
		list = strchr(line, ':');
		path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		path[strcspn(path, "\n")] = 0;
		if (m->version == 2 ? strcmp(line, "0:") : !has_word(list + 1, "memory", ","))
			path = NULL;
	}
	fclose(f);
	if (!path || *path != '/') {
		free(line);
		return say(msg, len, -ENOENT,
			   "--cgroup %s: %s names no memory cgroup: give the folder below %s", spec,
			   proc, m->point);
	}
	/* A bind mount of a part shows the groups below that part only. */
	n = strcmp(m->root, "/") ? strlen(m->root) : 0;
	if (strncmp(path, m->root, n) || (path[n] && path[n] != '/') || !strncmp(path, "/..", 3)) {
		say(msg, len, -ENOENT,
		    "--cgroup %s: its group %.200s is outside of what %s shows: run memprov "
		    "outside of the container",
		    spec, path, m->point);
		free(line);
		return -ENOENT;
	}
	snprintf(folder, sizeof(folder), "%s%s", m->point, path + n);
	free(line);
	return take(spec, folder, m, c, msg, len);
}

static int is_id(const char *spec)
{
	return strlen(spec) >= ID_DIGITS && !spec[strspn(spec, "0123456789abcdef")];
}

/* The monitor of a container runs in a folder of its own, which carries the id too. */
static int names_container(const char *folder, const char *id)
{
	return strstr(folder, id) && !strstr(folder, "-conmon-");
}

static FTS *open_tree(const char *folder)
{
	char *const roots[] = {(char *)(unsigned long)folder, NULL};

	return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
}

static int by_id(const char *id, const struct cgroup_mount *m, struct cgroup *c, char *msg,
		 size_t len)
{
	char found[CGROUP_PATH] = "";
	FTS *tree = open_tree(m->point);
	FTSENT *e;
	int n = 0;

	if (!tree)
		return say(msg, len, -errno, "--cgroup %s: %s: %s", id, m->point, strerror(errno));
	while ((e = fts_read(tree))) {
		if (e->fts_info != FTS_D || !e->fts_level || !names_container(e->fts_name, id))
			continue;
		if (n++ == 1) {
			say(msg, len, -EEXIST,
			    "--cgroup %s: more than one group has this id: %s and %s; give the "
			    "folder",
			    id, found, e->fts_path);
			break;
		}
		snprintf(found, sizeof(found), "%s", e->fts_path);
		fts_set(tree, e, FTS_SKIP);
	}
	fts_close(tree);
	if (!n)
		return say(msg, len, -ENOENT,
			   "--cgroup %s: no group below %s has this id in its name: check it, or "
			   "use of:PID",
			   id, m->point);
	return n > 1 ? -EEXIST : take(id, found, m, c, msg, len);
}

int cgroup_find(const char *spec, const struct cgroup_mount *m, struct cgroup *ret_c, char *msg,
		size_t len)
{
	char below[2 * CGROUP_PATH];

	if (!strncmp(spec, "of:", 3))
		return of_pid(spec, m, ret_c, msg, len);
	if (!*spec || strlen(spec) >= CGROUP_PATH)
		return say(msg, len, -EINVAL,
			   "--cgroup: not a name: give a folder, a container id or of:PID");
	if (spec[0] == '/' && is_folder(spec))
		return take(spec, spec, m, ret_c, msg, len);
	/* Also as /proc/PID/cgroup and container engines write it: from the mount. */
	snprintf(below, sizeof(below), "%s/%s", m->point, spec);
	if (is_folder(below))
		return take(spec, below, m, ret_c, msg, len);
	if (is_id(spec))
		return by_id(spec, m, ret_c, msg, len);
	return say(msg, len, -ENOENT,
		   "--cgroup %s: no such group below %s: give its folder, at least %d hex digits "
		   "of a container id, or of:PID",
		   spec, m->point, ID_DIGITS);
}

int cgroup_of_inode(const struct cgroup_mount *m, u64 ino, struct cgroup *ret_c)
{
	FTS *tree = ino ? open_tree(m->point) : NULL;
	int err = -ENOENT;
	char msg[64];
	FTSENT *e;

	while (tree && err && (e = fts_read(tree)))
		if (e->fts_info == FTS_D && e->fts_statp->st_ino == ino)
			err = take("", e->fts_path, m, ret_c, msg, sizeof(msg));
	if (tree)
		fts_close(tree);
	return err ? -ENOENT : 0;
}

int cgroup_parent(const struct cgroup_mount *m, struct cgroup *c)
{
	char above[CGROUP_PATH], msg[64], *end;

	snprintf(above, sizeof(above), "%s", c->folder);
	end = strrchr(above, '/');
	if (strlen(c->folder) <= strlen(m->point) || !end)
		return -ENOENT;
	*end = 0;
	return take("", above, m, c, msg, sizeof(msg)) ? -ENOENT : 0;
}

/* ---- the tree below ---- */

static int each_pid_of(const char *folder, int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	char path[CGROUP_PATH + 32];
	long pid;
	FILE *f;
	int err = 0;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ENODEV ? 0 : -errno;
	while (!err && fscanf(f, "%ld", &pid) == 1)
		if (pid > 0) /* 0: of another pid namespace */
			err = fn(ctx, (pid_t)pid);
	fclose(f);
	return err;
}

int cgroup_each_pid(const struct cgroup *c, int (*fn)(void *ctx, pid_t pid), void *ctx)
{
	FTS *tree = open_tree(c->folder);
	FTSENT *e;
	int err = 0;

	if (!tree)
		return -errno;
	while (!err && (e = fts_read(tree)))
		if (e->fts_info == FTS_D)
			err = each_pid_of(e->fts_path, fn, ctx);
	fts_close(tree);
	return err;
}

int cgroup_inodes(const struct cgroup *c, u64 **ret_inos)
{
	FTS *tree = open_tree(c->folder);
	u64 *inos = NULL, *more;
	FTSENT *e;
	int n = 0;

	if (!tree)
		return -errno;
	while ((e = fts_read(tree))) {
		if (e->fts_info != FTS_D)
			continue;
		if (!(n & (n - 1))) {
			more = realloc(inos, (n ? 2 * (size_t)n : 1) * sizeof(*inos));
			if (!more) {
				free(inos);
				fts_close(tree);
				return -ENOMEM;
			}
			inos = more;
		}
		inos[n++] = e->fts_statp->st_ino;
	}
	fts_close(tree);
	if (!n) {
		free(inos);
		return -ENOENT;
	}
	*ret_inos = inos;
	return n;
}
