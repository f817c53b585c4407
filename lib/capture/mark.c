/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/capture/clock.h"
#include "lib/capture/mark.h"
#include "lib/text/text.h"

#define NAME	    "memprov-mark/"
#define MAGIC	    0x6b6d706du /* "mpmk" */
#define POLL_MAX    16 /* answered in one turn */
#define LIST_MS	    5000 /* a recorder that takes a picture does not answer at once */
#define SEND_MS	    60000
#define ALIVE_MS    500 /* look whether the recorder is still there */
#define PACKET_HEAD offsetof(struct packet, text)

enum kind { ASK = 1, MARK = 2, ANSWER = 3 };

struct packet {
	u32 magic, kind;
	s64 err;
	u64 time_ns;
	char text[4096]; /* the marker, or the recorder's file; as long as the packet */
};

struct mark_port {
	int fd;
	char path[PATH_MAX];
	struct packet in;
};

const char *mark_refused(const char *text, size_t len)
{
	size_t n;

	if (!len)
		return "is empty";
	if (len > MARK_TEXT_MAX)
		return "is longer than 256 bytes";
	for (; len; text += n, len -= n) {
		n = text_char((const u8 *)text, len);
		if (!n)
			return "has a control character or is not UTF-8";
	}
	return NULL;
}

/* Abstract: the first byte of the path is 0 and no file is made. */
static socklen_t address(struct sockaddr_un *a, pid_t pid)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, NAME "%d", (int)pid);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, err;

	if (fd < 0)
		return -errno;
	/* Before it has a name: no packet comes without its sender. */
	if (!setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Length of the packet, 0 for one to pass over, -EAGAIN when there is none. The text gets its end.
 */
static ssize_t receive(int fd, struct packet *p, struct sockaddr_un *ret_from, socklen_t *ret_len,
		       struct ucred *ret_who)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {p, sizeof(*p) - 1};
	struct msghdr msg = {
		.msg_name = ret_from,
		.msg_namelen = sizeof(*ret_from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c;

	if (n < 0)
		return -errno;
	*ret_len = msg.msg_namelen;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
	    c->cmsg_len < CMSG_LEN(sizeof(*ret_who)))
		return 0;
	memcpy(ret_who, CMSG_DATA(c), sizeof(*ret_who));
	if (n < (ssize_t)PACKET_HEAD || msg.msg_flags & MSG_TRUNC || p->magic != MAGIC)
		return 0;
	((char *)p)[n] = 0;
	return n;
}

/* ---- the recorder's side ---- */

/* The file may not be there yet, its folder is; it is no link itself. */
static void resolve(const char *path, char ret[PATH_MAX])
{
	const char *name = strrchr(path, '/');
	char folder[PATH_MAX], real[PATH_MAX];
	int n;

	name = name ? name + 1 : path;
	n = snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	if (n >= (int)sizeof(folder) || !realpath(n ? folder : ".", real))
		return;
	n = snprintf(ret, PATH_MAX, "%s/%s", strcmp(real, "/") ? real : "", name);
	if (n >= PATH_MAX)
		ret[0] = 0;
}

int mark_open(const char *path, struct mark_port **ret_m)
{
	struct mark_port *m = calloc(1, sizeof(*m));
	struct sockaddr_un a;
	int err = 0;

	if (!m)
		return -ENOMEM;
	if (path)
		resolve(path, m->path);
	m->fd = open_socket();
	if (m->fd < 0)
		err = m->fd;
	else if (bind(m->fd, (struct sockaddr *)&a, address(&a, getpid())))
		err = -errno;
	if (err)
		mark_close(&m);
	else
		*ret_m = m;
	return err;
}

static int answer(struct mark_port *m, size_t len, const struct ucred *who, struct packet *out,
		  int (*put)(void *ctx, const char *text, u64 *ret_time_ns), void *ctx)
{
	const char *text = m->in.text;
	int err;

	if (who->uid != 0 && who->uid != geteuid()) {
		out->err = -EACCES;
		return 0;
	}
	if (m->in.kind == ASK) {
		memcpy(out->text, m->path, strlen(m->path));
		return 0;
	}
	if (m->in.kind != MARK || mark_refused(text, len - PACKET_HEAD)) {
		out->err = -EINVAL;
		return 0;
	}
	err = put(ctx, text, &out->time_ns);
	out->err = err;
	return err;
}

int mark_poll(struct mark_port *m, int (*put)(void *ctx, const char *text, u64 *ret_time_ns),
	      void *ctx)
{
	struct sockaddr_un from;
	struct ucred who;
	socklen_t from_len;
	int i, err = 0;
	ssize_t n = 0;

	for (i = 0; i < POLL_MAX && !err; i++) {
		struct packet out = {.magic = MAGIC, .kind = ANSWER};

		n = receive(m->fd, &m->in, &from, &from_len, &who);
		if (n < 0)
			break;
		if (!n || from_len <= sizeof(from.sun_family))
			continue;
		err = answer(m, (size_t)n, &who, &out, put, ctx);
		/* A sender that does not take its answer is not waited for. */
		sendto(m->fd, &out, PACKET_HEAD + strlen(out.text), MSG_DONTWAIT | MSG_NOSIGNAL,
		       (struct sockaddr *)&from, from_len);
	}
	return err;
}

void mark_close(struct mark_port **m)
{
	if (!*m)
		return;
	if ((*m)->fd >= 0)
		close((*m)->fd);
	free(*m);
	*m = NULL;
}

/* ---- the sender's side ---- */

static u64 now_ms(void)
{
	return now_ns() / 1000000;
}

/* Waits for the answer of a connected recorder. */
static int await(int fd, pid_t pid, u64 ms, struct packet *ret)
{
	u64 until = now_ms() + ms;
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	struct sockaddr_un from;
	struct ucred who;
	socklen_t len;
	ssize_t n;

	while (now_ms() < until) {
		if (poll(&pfd, 1, ALIVE_MS) > 0) {
			n = receive(fd, ret, &from, &len, &who);
			if (n > 0 && ret->kind == ANSWER && who.pid == pid)
				return ret->err <= 0 && ret->err > -4096 ? (int)ret->err : -EBADMSG;
			if (n < 0 && n != -EAGAIN)
				return (int)n;
			continue;
		}
		/* An empty packet is passed over; only its failure tells something. */
		if (send(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
			return -errno;
	}
	return -ETIMEDOUT;
}

static int request(pid_t pid, enum kind kind, const char *text, u64 ms, struct packet *ret)
{
	struct packet out = {.magic = MAGIC, .kind = kind};
	struct sockaddr_un to, own = {.sun_family = AF_UNIX};
	int fd = open_socket(), err = 0;

	if (fd < 0)
		return fd;
	memcpy(out.text, text, strlen(text));
	/* Without a path the kernel gives it a name of its own, for the answer. */
	if (bind(fd, (struct sockaddr *)&own, sizeof(own.sun_family)) ||
	    connect(fd, (struct sockaddr *)&to, address(&to, pid)) ||
	    send(fd, &out, PACKET_HEAD + strlen(text), MSG_NOSIGNAL) < 0)
		err = -errno;
	if (!err)
		err = await(fd, pid, ms, ret);
	close(fd);
	return err;
}

int mark_list(struct recording_seen *ret, int max, int *ret_others)
{
	FILE *f = fopen("/proc/self/net/unix", "re");
	struct packet *in = malloc(sizeof(*in));
	char line[512], *at;
	int n = 0, err;
	pid_t pid;

	*ret_others = 0;
	if (!f || !in) {
		err = f ? -ENOMEM : -errno;
		if (f)
			fclose(f);
		free(in);
		return err;
	}
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, " @" NAME);
		if (!at)
			continue;
		pid = (pid_t)strtol(at + strlen(" @" NAME), NULL, 10);
		err = request(pid, ASK, "", LIST_MS, in);
		if (err && err != -ETIMEDOUT) {
			*ret_others += err == -EACCES;
			continue;
		}
		if (n < max) {
			ret[n].pid = pid;
			snprintf(ret[n].path, sizeof(ret[n].path), "%s", err ? "" : in->text);
		}
		n++;
	}
	fclose(f);
	free(in);
	return n;
}

int mark_send(pid_t pid, const char *text, u64 *ret_time_ns)
{
	struct packet *in = malloc(sizeof(*in));
	int err;

	if (!in)
		return -ENOMEM;
	err = request(pid, MARK, text, SEND_MS, in);
	if (!err)
		*ret_time_ns = in->time_ns;
	free(in);
	return err;
}
