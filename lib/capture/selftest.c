/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/capture/selftest.h"
#include "lib/capture/session.h"

#define PAGE	 4096ul
#define TOUCHED	 3 /* pages written; the first is then shared by a fork and written again */
#define DROPPED	 1 /* page given back */
#define POPULATE 2 /* pages mapped without a fault */
#define SPACE	 1u

/* What the child did, told through shared memory. */
struct work {
	u64 at, populated; /* mappings of TOUCHED + 1 and POPULATE pages */
	int failed;
};

struct seen {
	const struct work *w;
	u32 maps, unmaps, drops, touched[TOUCHED], copies, strays;
};

static void share_and_write(volatile char *at)
{
	int hold[2];
	char c;
	pid_t pid;

	if (pipe2(hold, O_CLOEXEC))
		return;
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		_exit(read(hold[0], &c, 1) != 0);
	}
	at[0] = 2;
	close(hold[0]);
	close(hold[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void child(struct work *w)
{
	volatile char *at = mmap(NULL, (TOUCHED + 1) * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *pop;
	u32 i;

	w->failed = at == MAP_FAILED;
	if (w->failed)
		return;
	w->at = (u64)(unsigned long)at;
	madvise((void *)at, (TOUCHED + 1) * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < TOUCHED; i++)
		at[i * PAGE] = 1;
	share_and_write(at);
	madvise((void *)(at + PAGE), DROPPED * PAGE, MADV_DONTNEED);
	pop = mmap(NULL, POPULATE * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	w->failed = pop == MAP_FAILED;
	w->populated = (u64)(unsigned long)pop;
	munmap((void *)at, (TOUCHED + 1) * PAGE);
}

static void note_fault(struct seen *s, const struct mp_ev_fault *f)
{
	u64 page = (f->addr - s->w->at) / PAGE;

	if (f->addr >= s->w->populated && f->addr < s->w->populated + POPULATE * PAGE)
		s->strays++;
	if (f->addr < s->w->at || page > TOUCHED)
		return;
	if (page == TOUCHED)
		s->strays++;
	else if (f->member == 255)
		s->copies++;
	else
		s->touched[page]++;
}

static void note(void *ctx, const struct mp_hdr *rec)
{
	const struct mp_ev_advise *a = trace_body(rec, advise);
	const struct mp_ev_unmap *u = trace_body(rec, unmap);
	const struct mp_ev_map *m = trace_body(rec, map);
	struct seen *s = ctx;

	if (rec->space != SPACE)
		return;
	if (rec->type == MP_EV_MAP && (m->start == s->w->at || m->start == s->w->populated))
		s->maps++;
	else if (rec->type == MP_EV_UNMAP && u->start == s->w->at)
		s->unmaps++;
	else if (rec->type == MP_EV_ADVISE && a->start == s->w->at + PAGE &&
		 a->advice == MADV_DONTNEED)
		s->drops++;
	else if (rec->type == MP_EV_FAULT)
		note_fault(s, trace_body(rec, fault));
}

static void judge(const struct seen *s, struct selftest *t)
{
	u32 i, once = 0;

	for (i = 0; i < TOUCHED; i++)
		once += s->touched[i] == 1;
	if (s->maps != 2 || s->unmaps != 1 || s->drops != 1)
		snprintf(t->wrong[SELFTEST_MAP], sizeof(t->wrong[0]),
			 "self-test: saw %u of 2 mmap, %u of 1 munmap, %u of 1 madvise", s->maps,
			 s->unmaps, s->drops);
	if (once != TOUCHED || s->copies != 1 || s->strays)
		snprintf(t->wrong[SELFTEST_FAULT], sizeof(t->wrong[0]),
			 "self-test: saw %u of %u first touches, %u of 1 copy, %u faults too many",
			 once, TOUCHED, s->copies, s->strays);
}

/* Only when the child is done are the events read: what they must say is known then. */
static int watch(struct session *s, pid_t pid, int go, struct seen *seen)
{
	int err = session_follow(s, pid, SPACE), status;

	session_divert(s, note, seen);
	if (write(go, "g", 1) != 1)
		err = -errno;
	close(go);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	session_forget(s);
	return err;
}

int selftest_run(struct session *s, struct selftest *ret_t)
{
	struct seen seen = {0};
	struct work *w =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int go[2], err;
	pid_t pid;
	char c;

	memset(ret_t, 0, sizeof(*ret_t));
	if (w == MAP_FAILED || pipe2(go, O_CLOEXEC))
		return -errno;
	seen.w = w;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			child(w);
		_exit(0);
	}
	close(go[0]);
	err = pid < 0 ? -errno : watch(s, pid, go[1], &seen);
	if (!err && w->failed)
		err = -ENOMEM;
	if (!err)
		judge(&seen, ret_t);
	munmap(w, PAGE);
	return err;
}
