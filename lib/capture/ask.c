/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bpf/shared/types.h"
#include "lib/capture/ask.h"
#include "lib/capture/jail.h"

#define FILE_MS 10000

static int write_all(int out, const u8 *p, size_t len)
{
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		n = write(out, p, len);
		if (n <= 0)
			return 1;
	}
	return 0;
}

static int read_all(int in, u8 *p, size_t len)
{
	struct pollfd wait = {.fd = in, .events = POLLIN};
	ssize_t n;

	for (; len; p += n, len -= (size_t)n) {
		if (poll(&wait, 1, FILE_MS) != 1)
			return -ETIMEDOUT;
		n = read(in, p, len);
		if (n <= 0)
			return -EBADMSG;
	}
	return 0;
}

int ask_file(int fd, void (*fn)(const void *ctx, int fd, void *answer), const void *ctx, void *ret,
	     size_t len)
{
	void *answer = calloc(1, len);
	int fds[2], err;
	pid_t pid;

	if (!answer || pipe(fds)) {
		free(answer);
		return -EAGAIN;
	}
	pid = fork();
	if (!pid) {
		int keep[] = {fd, fds[1]};

		prctl(PR_SET_NAME, "memprov-file");
		if (jail_enter(keep, 2))
			_exit(1);
		fn(ctx, fd, answer);
		_exit(write_all(fds[1], answer, len));
	}
	close(fds[1]);
	free(answer);
	err = pid < 0 ? -EAGAIN : read_all(fds[0], ret, len);
	close(fds[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return err;
}
