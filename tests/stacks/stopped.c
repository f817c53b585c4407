/* SPDX-License-Identifier: GPL-2.0-only
 * stopped PID: for each thread id read, of a process that is stopped, what memprov's unwinder in
 * BPF makes of that thread's stack: "METHOD END address..." on a line, or "again" when this process
 * cannot take that stack in at its place. The stack is copied to the same addresses here, where the
 * unwinder reads it as it would read the thread's own; it is the very code that records. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "lib/capture/unwinder.h"
#include "stopped.skel.h"

#define SPACE	  1
#define MAX_STACK (8ul << 20)
#define OTHER	  (256ul << 10)
#define PAGE	  4096ul

struct args {
	u64 ip, sp, bp, ucontext, space;
};

static struct user_regs_struct regs;

static int read_regs(pid_t tid)
{
	int status, err;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || waitpid(tid, &status, __WALL) != tid)
		return -errno;
	err = ptrace(PTRACE_GETREGS, tid, 0, &regs) ? -errno : 0;
	ptrace(PTRACE_DETACH, tid, 0, 0);
	return err;
}

static struct {
	unsigned long start, end;
} copies[2];
static int nr_copies;

/* Pages that are not there stay zero. */
static int copy_range(pid_t tid, unsigned long start, unsigned long end)
{
	unsigned long at;

	if (mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)start)
		return -EEXIST;
	copies[nr_copies].start = start;
	copies[nr_copies++].end = end;
	for (at = start; at < end; at += PAGE) {
		struct iovec to = {(void *)at, PAGE};

		process_vm_readv(tid, &to, 1, &to, 1, 0);
	}
	return 0;
}

/* What lies above the stack pointer, and the stack that a signal handler with one of its own has
 * left: glibc has the thread's control block on top of it. */
static int copy_stacks(pid_t tid)
{
	unsigned long start, end, sp = regs.rsp & ~(PAGE - 1);
	unsigned long tcb = (regs.fs_base & ~(PAGE - 1)) + PAGE;
	char path[64], line[4300];
	FILE *f;
	int err = 0;

	while (nr_copies--)
		munmap((void *)copies[nr_copies].start,
		       copies[nr_copies].end - copies[nr_copies].start);
	nr_copies = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	f = fopen(path, "re");
	while (f && !err && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		if (sp >= start && sp < end)
			err = copy_range(tid, sp, end - sp < MAX_STACK ? end : sp + MAX_STACK);
		else if (tcb > start && tcb <= end && tcb - start > OTHER)
			err = copy_range(tid, tcb - OTHER, tcb);
	}
	if (f)
		fclose(f);
	return err;
}

/* As in a signal's struct ucontext. */
static void fill_ucontext(u64 *uc)
{
	u64 r[] = {regs.r8,  regs.r9,  regs.r10, regs.r11, regs.r12, regs.r13,
		   regs.r14, regs.r15, regs.rdi, regs.rsi, regs.rbp, regs.rbx,
		   regs.rdx, regs.rax, regs.rcx, regs.rsp, regs.rip};

	memcpy(uc + 5, r, sizeof(r));
}

static int walk(struct stopped_bpf *skel, pid_t tid)
{
	u64 ucontext[32] = {0};
	struct args a;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &a, .ctx_size_in = sizeof(a));
	int err = read_regs(tid);
	u32 i;

	if (!err)
		err = copy_stacks(tid);
	if (err == -EEXIST) {
		puts("again");
		return 0;
	}
	if (err)
		return err;
	fill_ucontext(ucontext);
	a = (struct args){regs.rip, regs.rsp, regs.rbp, (u64)(unsigned long)ucontext, SPACE};
	err = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.walk_copy), &opts);
	if (err || opts.retval)
		return err ? err : -EIO;
	printf("%u %u", skel->bss->out_method, skel->bss->out_end);
	for (i = 0; i < skel->bss->out_nr; i++)
		printf(" %llx", (unsigned long long)skel->bss->out_frames[i]);
	puts("");
	return 0;
}

static int attach(struct stopped_bpf *skel, pid_t pid, struct unwinder **ret_u)
{
	const struct bank_fds fds = {
		.ranges = bpf_map__fd(skel->maps.ranges),
		.spans = bpf_map__fd(skel->maps.spans),
		.banks = bpf_map__fd(skel->maps.banks),
		.losses = bpf_map__fd(skel->maps.space_loss),
		.generation = &skel->bss->mp_unwind_generation,
	};
	struct {
		struct mp_hdr hdr;
		struct mp_ev_space ev;
	} rec = {
		.hdr = {.type = MP_EV_SPACE, .size = sizeof(rec), .space = SPACE},
		.ev = {.tgid = (u32)pid, .cause = MP_SPACE_ATTACH},
	};
	int err = unwinder_new(&fds, ret_u);

	return err ? err : unwinder_feed(*ret_u, &rec.hdr);
}

static int settle(struct unwinder *u)
{
	int err = unwinder_turn(u);

	while (!err && unwinder_busy(u)) {
		usleep(1000);
		err = unwinder_turn(u);
	}
	return err;
}

int main(int argc, char **argv)
{
	struct stopped_bpf *skel;
	struct unwinder *u = NULL;
	char line[64];
	int err;

	if (argc != 2)
		return fprintf(stderr, "usage: stopped PID < thread-ids\n"), 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL & ~LIBBPF_STRICT_AUTO_RLIMIT_MEMLOCK);
	skel = stopped_bpf__open_and_load();
	if (!skel)
		return fprintf(stderr, "stopped: cannot load: %s\n", strerror(errno)), 1;
	err = attach(skel, atoi(argv[1]), &u);
	while (!err && fgets(line, sizeof(line), stdin)) {
		err = settle(u);
		if (!err)
			err = walk(skel, atoi(line));
	}
	unwinder_free(&u);
	stopped_bpf__destroy(skel);
	return err ? fprintf(stderr, "stopped: %s\n", strerror(-err)), 1 : 0;
}
