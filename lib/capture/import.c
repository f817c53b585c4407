/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/capture/clock.h"
#include "lib/capture/import.h"
#include "lib/capture/jail.h"
#include "lib/perf/perfdata.h"

/* What the child says: samples, and at the end one END that says how it went. */
struct word {
	u32 end;
	int err;
	union {
		struct perf_sample sample;
		struct perf_info info;
		char msg[120];
	};
};

struct import {
	u64 seq;
	struct trace_writer *w;
	u64 began_ns, ended_ns;
	struct mp_ev_memsamples sum;
};

/* ---- the child ---- */

static int tell(void *ctx, const struct perf_sample *sample)
{
	struct word word = {.sample = *sample};

	return fwrite(&word, sizeof(word), 1, ctx) == 1 ? 0 : -EIO;
}

static int child(int file, int pipe_fd)
{
	int keep[] = {file, pipe_fd};
	struct word word = {.end = 1};
	char msg[sizeof(word.msg)] = "";
	struct perf_info info = {0};
	FILE *to;

	if (jail_enter(keep, 2))
		return 1;
	to = fdopen(pipe_fd, "w");
	if (!to)
		return 1;
	word.err = perfdata_read(file, tell, to, &info, msg, sizeof(msg));
	if (word.err)
		memcpy(word.msg, msg, sizeof(msg));
	else
		word.info = info;
	return fwrite(&word, sizeof(word), 1, to) != 1 || fclose(to);
}

/* ---- the recorder ---- */

static int put(struct import *im, u16 type, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[64];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .seq = im->seq,
			 .time_ns = now_ns()}};

	memcpy(rec.body, body, len);
	return trace_write(im->w, &rec.hdr);
}

/* Of a clock that is not ours nobody knows whether it was in the recorded time. */
static int put_sample(struct import *im, const struct perf_sample *s, int ours)
{
	const struct mp_ev_memsample ev = {
		.addr = s->addr,
		.ip = s->ip,
		.weight = s->weight,
		.data_src = s->data_src,
		.pid = s->pid,
		.tid = s->tid,
		.has = s->has,
	};

	im->sum.total++;
	if (!s->addr || !(s->has & PERF_HAS_ADDR) ||
	    (ours && (s->time_ns < im->began_ns || s->time_ns > im->ended_ns))) {
		im->sum.left_out++;
		return 0;
	}
	return put(im, MP_EV_MEMSAMPLE, &ev, sizeof(ev));
}

/* The clock is known at the end only: a first reading says it, the second has the samples. */
static int hear(struct import *im, int fd, int first, struct word *ret_end)
{
	FILE *f = fdopen(fd, "r");
	int err = f ? 0 : -ENOMEM;
	struct word word;

	ret_end->end = 0;
	while (!err && !ret_end->end && fread(&word, sizeof(word), 1, f) == 1) {
		if (word.end)
			*ret_end = word;
		else if (!first)
			err = put_sample(im, &word.sample, im->sum.clock != 0);
	}
	if (f)
		fclose(f);
	else
		close(fd);
	return err;
}

static int read_once(struct import *im, int file, int first, struct word *ret_end)
{
	int ends[2], err, status = 0;
	pid_t pid;

	if (lseek(file, 0, SEEK_SET) < 0)
		return -ESPIPE;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid)
		_exit(child(file, ends[1]));
	close(ends[1]);
	err = pid < 0 ? -errno : 0;
	if (err)
		close(ends[0]);
	else
		err = hear(im, ends[0], first, ret_end);
	if (pid > 0) {
		if (!ret_end->end)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	return err;
}

int import_samples(const char *path, u64 seq, u64 began_ns, u64 ended_ns, struct trace_writer *w,
		   char *msg, size_t msg_len)
{
	struct import im = {.seq = seq, .w = w, .began_ns = began_ns, .ended_ns = ended_ns};
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), turn, err = 0;
	s64 name = trace_string(w, path);
	struct word end = {0};

	if (file < 0) {
		err = -errno;
		snprintf(msg, msg_len, "%s", strerror(errno));
		return err;
	}
	for (turn = 0; !err && turn < 2; turn++) {
		err = read_once(&im, file, !turn, &end);
		if (!err && !end.end)
			err = -EBADMSG;
		if (err) {
			snprintf(msg, msg_len, "%s",
				 err == -ESPIPE	   ? "samples are read from a file only"
				 : err == -EBADMSG ? "reading it crashed or took too long"
						   : strerror(-err));
			break;
		}
		if (end.err) {
			end.msg[sizeof(end.msg) - 1] = 0;
			snprintf(msg, msg_len, "%s", end.msg[0] ? end.msg : strerror(-end.err));
			err = end.err;
			break;
		}
		im.sum.clock = end.info.monotonic == 1;
		im.sum.lost = end.info.lost;
		im.sum.throttled = end.info.throttled;
	}
	close(file);
	im.sum.file = name > 0 ? (u32)name : 0;
	return err ? err : put(&im, MP_EV_MEMSAMPLES, &im.sum, sizeof(im.sum));
}
