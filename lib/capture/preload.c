/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "lib/capture/libs.h"
#include "lib/capture/preload.h"
#include "lib/capture/spawn.h"

/* The adapter as it was built. */
__asm__(".pushsection .rodata\n"
	"adapter_file:\n"
	".incbin \"" MEMPROV_ADAPTER "\"\n"
	"adapter_end:\n"
	".popsection\n");
extern const char adapter_file[] __attribute__((visibility("hidden")));
extern const char adapter_end[] __attribute__((visibility("hidden")));

/* ---- the file ---- */

/* What others could write to, or from which nothing can be executed, is no place. */
static int open_place(const char *dir)
{
	struct statvfs fs;
	struct stat st;
	int fd;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && !fstatvfs(fd, &fs) && st.st_uid == geteuid() &&
	    !(st.st_mode & 022) && !(fs.f_flag & ST_NOEXEC) && !fchmod(fd, 0755))
		return fd;
	close(fd);
	return -EPERM;
}

static int is_there(int dir, const char *name, size_t size)
{
	struct stat st;

	return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       st.st_uid == geteuid() && st.st_mode % 01000 == 0644 && (size_t)st.st_size == size;
}

/* Whole or not at all, whoever else is about to write it. */
static int write_file(int dir, const char *name, size_t size)
{
	char temp[64];
	ssize_t n;
	int fd;

	snprintf(temp, sizeof(temp), ".%d", (int)getpid());
	unlinkat(dir, temp, 0);
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	n = fchmod(fd, 0644) ? -1 : write(fd, adapter_file, size);
	if (close(fd) || n != (ssize_t)size || renameat(dir, temp, dir, name)) {
		unlinkat(dir, temp, 0);
		return -EIO;
	}
	return 0;
}

static u64 hash(const char *data, size_t len)
{
	u64 h = 0xcbf29ce484222325ull;

	while (len--)
		h = (h ^ (u8)*data++) * 0x100000001b3ull;
	return h;
}

int preload_file(char *ret_path, size_t len)
{
	static const char *const places[] = {"/run/memprov", "/dev/shm/memprov",
					     "/var/tmp/memprov"};
	size_t size = (size_t)(adapter_end - adapter_file), i;
	int dir, err = -EPERM;
	char name[64];

	snprintf(name, sizeof(name), "libmemprov-alloc-%016llx.so",
		 (unsigned long long)hash(adapter_file, size));
	for (i = 0; i < sizeof(places) / sizeof(places[0]) && err; i++) {
		dir = open_place(places[i]);
		if (dir < 0)
			continue;
		err = is_there(dir, name, size) ? 0 : write_file(dir, name, size);
		close(dir);
		snprintf(ret_path, len, "%s/%s", places[i], name);
	}
	return err;
}

/* ---- the command ---- */

char **preload_env(const char *path, u64 interval)
{
	const char *others = getenv("LD_PRELOAD");
	char **env = calloc(3, sizeof(*env));

	if (!env)
		return NULL;
	if (asprintf(&env[0], "LD_PRELOAD=%s%s%s", path, others && *others ? ":" : "",
		     others ? others : "") < 0 ||
	    asprintf(&env[1], "MEMPROV_SAMPLE_BYTES=%llu", (unsigned long long)interval) < 0)
		preload_env_free(&env);
	return env;
}

void preload_env_free(char ***env)
{
	char **e;

	for (e = *env; e && *e; e++)
		free(*e);
	free(*env);
	*env = NULL;
}

struct command {
	int nr; /* files so far: the program, its loader, libraries */
	const char *refused;
};

/* A sanitizer's library must be the first of all. */
static int look(void *ctx, const char *path)
{
	static const char *const sanitizers[] = {"libasan.so", "libtsan.so", "liblsan.so",
						 "libhwasan.so"};
	struct command *c = ctx;
	const char *name = strrchr(path, '/');
	struct stat st;
	size_t i;

	if (!c->nr++ && !stat(path, &st) && st.st_mode & (S_ISUID | S_ISGID))
		c->refused = "it is set-user-ID: its loader preloads nothing";
	for (i = 0; name && i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++)
		if (!strncmp(name + 1, sanitizers[i], strlen(sanitizers[i])))
			c->refused =
				"it runs under a sanitizer, which replaces the allocator itself";
	return 0;
}

const char *preload_refused(const char *command, const struct spawn_user *user)
{
	struct command c = {0};

	if (!libs_of(command, user, look, &c) && c.nr == 1 && !c.refused)
		c.refused = "it is static: nothing can be preloaded";
	return c.refused;
}
