/* SPDX-License-Identifier: GPL-2.0-only
 * The processes of a recording whose mapped code is looked into, as the session's records tell of
 * them: who puts probes on files keeps here what each process has. */
#ifndef MP_CAPTURE_PROCESSES_H
#define MP_CAPTURE_PROCESSES_H

#include <sys/types.h>
#include "bpf/shared/event.h"
#include "lib/capture/spawn.h"

struct bpf_link;

/* Probes: many of a file, or one. */
struct process_link {
	struct bpf_link *one; /* NULL: many */
	int many;
};

/* Files and links stay with it when it becomes another program. */
struct process {
	pid_t pid;
	u32 space;
	u8 to_scan; /* it has code that was not looked into */
	u8 left;
	u8 joined; /* it only shares the memory of another */
	u8 late; /* ran before its code was looked into: what it did meanwhile was not seen */
	u8 mark; /* its keeper's own; 0 for another program */
	size_t *files; /* numbers that their keeper gives them */
	size_t nr_files;
	struct process_link *links;
	size_t nr_links;
};

struct processes {
	struct process *all;
	size_t nr;
	int due;
};

/* NULL: memory is short. */
struct process *processes_add(struct processes *ps, pid_t pid);
/* A record of the session: births, ends and mapped code. 0 or -ENOMEM. */
int processes_feed(struct processes *ps, const struct mp_hdr *rec);
/* Calls scan for each that has code to look into, which clears to_scan unless it is to be asked
 * again, and lets go of those that have left. 0, or what scan returned. */
int processes_turn(struct processes *ps, int (*scan)(void *ctx, struct process *p), void *ctx);
/* Calls look for the files that command, about to be executed by pid, will map, so that it need not
 * be scanned. 0, or what look returned below 0. */
int processes_expect(struct processes *ps, pid_t pid, const char *command,
		     const struct spawn_user *user,
		     int (*look)(void *ctx, struct process *p, int fd, const char *path),
		     void *ctx);
void processes_detach(struct processes *ps);
void processes_free(struct processes *ps);

/* 1: the file is new to it; 0: it has it already; -ENOMEM. */
int process_meets(struct process *p, size_t file);
/* Takes the link over, also on failure: -ENOMEM. */
int process_add_link(struct process *p, struct process_link link);

#endif
