/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/capture/clock.h"
#include "lib/capture/inmate.h"
#include "lib/capture/jail.h"

u64 now_ms(void)
{
	return now_ns() / 1000000;
}

int inmate_write(int out, const void *buf, size_t len)
{
	const u8 *p = buf;

	while (len) {
		ssize_t n = write(out, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static void child(const char *name, const int *fds, size_t nr_fds, int (*work)(void *ctx, int out),
		  void *ctx, int out)
{
	int *keep = malloc((nr_fds + 1) * sizeof(*keep));
	struct sigaction sa = {.sa_handler = SIG_IGN};

	/* Ctrl-C is the recorder's to act on. */
	sigaction(SIGINT, &sa, NULL);
	sa.sa_handler = SIG_DFL;
	sigaction(SIGTERM, &sa, NULL);
	prctl(PR_SET_NAME, name);
	if (!keep)
		_exit(1);
	if (nr_fds)
		memcpy(keep, fds, nr_fds * sizeof(*keep));
	keep[nr_fds] = out;
	if (jail_enter(keep, nr_fds + 1))
		_exit(1);
	_exit(work(ctx, out) != 0);
}

int inmate_start(struct inmate *p, const char *name, const int *fds, size_t nr_fds,
		 int (*work)(void *ctx, int out), void *ctx)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		child(name, fds, nr_fds, work, ctx, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -EAGAIN;
	}
	*p = (struct inmate){pid, ends[0]};
	return 0;
}

void inmate_end(struct inmate *p)
{
	if (!p->pid)
		return;
	close(p->pipe);
	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->pid = 0;
}

int inmate_read(const struct inmate *p, void *buf, size_t len, u64 until_ms)
{
	u8 *to = buf;

	while (len) {
		struct pollfd pfd = {.fd = p->pipe, .events = POLLIN};
		u64 now = now_ms();
		ssize_t n;

		if (now >= until_ms)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, (int)(until_ms - now)) <= 0)
			continue; /* a signal, or the time is up */
		n = read(p->pipe, to, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		to += n;
		len -= (size_t)n;
	}
	return 0;
}
