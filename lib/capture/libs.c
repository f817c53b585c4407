/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bpf/shared/types.h"
#include "lib/capture/libs.h"
#include "lib/sym/file.h"

#define PATH_LEN  4096
#define LIST_MS	  5000
#define MAX_PHDRS 128

/* A script's interpreter may be a script. */
#define MAX_SCRIPTS 4

static int find_command(const char *name, char *ret_path)
{
	const char *dirs = strchr(name, '/') ? "" : getenv("PATH");
	int len;

	for (; dirs; dirs = dirs[len] ? dirs + len + 1 : NULL) {
		len = (int)strcspn(dirs, ":");
		if (snprintf(ret_path, PATH_LEN, "%.*s%s%s", len, dirs, len ? "/" : "", name) <
			    PATH_LEN &&
		    !access(ret_path, X_OK))
			return 0;
	}
	return -ENOENT;
}

/* "#!/bin/sh -e": path becomes /bin/sh. */
static int is_script(int fd, char *path)
{
	char line[PATH_LEN];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	char *p = line + 2;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return 0;
	line[n] = 0;
	p += strspn(p, " \t");
	p[strcspn(p, " \t\n")] = 0;
	if (*p != '/')
		return 0;
	memcpy(path, p, strlen(p) + 1);
	return 1;
}

/* The loader named in the file: 1, it is in ret_path; 0: it has none. */
static int find_loader(int fd, char *ret_path)
{
	Elf64_Phdr ph;
	Elf64_Ehdr eh;
	int i;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phentsize != sizeof(ph))
		return 0;
	for (i = 0; i < eh.e_phnum && i < MAX_PHDRS; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + (u64)i * sizeof(ph))) !=
		    sizeof(ph))
			return 0;
		if (ph.p_type != PT_INTERP || ph.p_filesz >= PATH_LEN)
			continue;
		if (pread(fd, ret_path, ph.p_filesz, (off_t)ph.p_offset) != (ssize_t)ph.p_filesz)
			return 0;
		ret_path[ph.p_filesz] = 0;
		return ret_path[0] == '/';
	}
	return 0;
}

static _Noreturn void list(const char *loader, const char *path, const struct spawn_user *user,
			   int out)
{
	char *const argv[] = {(char *)loader, "--list", (char *)path, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 ||
	    spawn_become(user))
		_exit(1);
	execv(loader, argv);
	_exit(1);
}

static ssize_t read_all(int fd, char *buf, size_t len)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t at = 0;
	ssize_t n;

	while (at < len && poll(&p, 1, LIST_MS) == 1 && (n = read(fd, buf + at, len - at)) > 0)
		at += (size_t)n;
	return (ssize_t)at;
}

/* "	libc.so.6 => /lib/libc.so.6 (0x...)", "	/lib64/ld-linux.so.2 (0x...)" */
static int each_line(char *text, int (*fn)(void *ctx, const char *path), void *ctx)
{
	char *line, *save = NULL, *path;
	int err = 0;

	for (line = strtok_r(text, "\n", &save); line && !err; line = strtok_r(NULL, "\n", &save)) {
		path = strchr(line, '/');
		if (!path || !strstr(path, " (0x"))
			continue;
		*strstr(path, " (0x") = 0;
		err = fn(ctx, path);
	}
	return err;
}

static int each_library(const char *loader, const char *path, const struct spawn_user *user,
			int (*fn)(void *ctx, const char *path), void *ctx)
{
	static char text[1 << 18];
	int fds[2];
	ssize_t n;
	pid_t kid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	kid = fork();
	if (!kid)
		list(loader, path, user, fds[1]);
	close(fds[1]);
	n = kid < 0 ? 0 : read_all(fds[0], text, sizeof(text) - 1);
	close(fds[0]);
	if (kid > 0) {
		kill(kid, SIGKILL);
		while (waitpid(kid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	text[n] = 0;
	return each_line(text, fn, ctx);
}

int libs_of(const char *command, const struct spawn_user *user,
	    int (*fn)(void *ctx, const char *path), void *ctx)
{
	char path[PATH_LEN], loader[PATH_LEN];
	int fd, i, err = 0, has_loader = 0;
	struct stat st;

	if (find_command(command, path))
		return 0;
	for (i = 0; i < MAX_SCRIPTS; i++) {
		fd = file_open(-1, path, &st);
		if (fd < 0)
			return 0;
		if (is_script(fd, path)) {
			close(fd);
			continue;
		}
		has_loader = find_loader(fd, loader);
		close(fd);
		break;
	}
	err = fn(ctx, path);
	if (!err && has_loader)
		err = fn(ctx, loader);
	return err || !has_loader ? err : each_library(loader, path, user, fn, ctx);
}
