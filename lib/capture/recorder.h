/* SPDX-License-Identifier: GPL-2.0-only
 * One recording from start to end: attach, take a first picture, follow, take a last one, name the
 * stacks. The target is never stopped, and only when asked for is its allocator probed. The order
 * of calls is open, start, turn until it has ended, finish, free. */
#ifndef MP_CAPTURE_RECORDER_H
#define MP_CAPTURE_RECORDER_H

#include <signal.h>
#include <sys/types.h>
#include "lib/capture/allocs.h"
#include "lib/capture/spawn.h"
#include "lib/trace/rules.h"
#include "lib/trace/trace.h"

struct flight;
struct group;
struct recorder;
struct trigger_cause;

struct recorder_opts {
	const pid_t *pids;
	int nr_pids, tree;
	struct group *group; /* the cgroup they are of, NULL: none */
	char **argv; /* CMD to start and follow; NULL: pids */
	struct allocs_opts alloc; /* its mode, sample_bytes, min_bytes and prefixes */
	const char *path; /* what is recorded to, for who sets marks; NULL: no file */
	struct spawn_user user; /* whom CMD runs as */
	const struct name_rule *rules; /* go into the trace */
	size_t nr_rules;
	u64 ring_bytes; /* session_opts */
	int may_be_blind; /* session_opts; msg is set when it came to that */
	struct flight *flight; /* in memory until there is a reason to write; NULL: to a file */
	volatile sig_atomic_t *dump; /* of a flight recorder: set by who wants its file now */
	u64 duration_ns; /* 0: until the targets end */
	int accessed; /* watch accessed bits: clears them */
	u64 every_ns; /* clear and read again after this time; 0: once */
	const char *samples; /* a perf.data file to import at the end; NULL: none */
	int live; /* pictures when asked for, as cheap as can be: compared with counters only */
	const volatile sig_atomic_t *stop; /* set by a signal handler */
	void (*progress)(void *ctx); /* after each process of a picture, once recording; or NULL */
	void *progress_ctx;
};

/* Load, attach, and start CMD, which waits. w and what o points at stay the caller's and must
 * outlive the recorder. On failure -errno, with a line of reason and remedy in msg where there is
 * more to say. */
int recorder_open(const struct recorder_opts *o, struct trace_writer *w, char *msg, size_t msg_len,
		  struct recorder **ret_r);
/* Follow the targets, take the first picture, let CMD go. -EPERM: no PFNs; -EACCES: the kernel lets
 * nobody look into any of them. */
int recorder_start(struct recorder *r);
/* Drain for at most 50 ms, with a rolling picture when one is due. */
int recorder_turn(struct recorder *r);
/* A picture of every target now, into the trace. */
int recorder_picture(struct recorder *r);
/* The losses so far, and the cgroup's figures as they are. Events numbered up to *ret_seq are in
 * the trace then, but for one that a stalled processor still holds. */
int recorder_catch_up(struct recorder *r, u64 *ret_seq);
/* A marker of the recorder's own. */
int recorder_mark(struct recorder *r, const char *text);
/* Last picture, detach, write what is left, name the stacks of the file at path (NULL: nobody
 * does), END. */
int recorder_finish(struct recorder *r, const char *path);
/* CMD that still runs gets SIGTERM and 10 seconds, as perf-record(1) ends its own. -ETIMEDOUT: it
 * goes on. */
int recorder_end_command(struct recorder *r);
void recorder_free(struct recorder **r);

/* Files that a flight recorder has written; why the last one. */
unsigned int recorder_written(const struct recorder *r, const struct trigger_cause **ret_c);
/* enum mp_end, -1 while it goes on. */
int recorder_end(const struct recorder *r);
/* The first process followed. */
pid_t recorder_pid(const struct recorder *r);
/* errno of CMD's exec, 0 when it was started. */
int recorder_exec_error(const struct recorder *r);
/* CMD's exit status as a shell says it (128+n for a signal); 0 without CMD or while it runs. */
int recorder_status(const struct recorder *r);
/* Programs that were executed, and of them those that did not load the adapter. */
u64 recorder_silent(const struct recorder *r, u64 *ret_programs);
/* An allocator that could not be probed, with the reason; NULL: none. */
const char *recorder_unprobed(const struct recorder *r);
/* Pictures that the kernel refused: protected processes; *ret_first is one of them, when any. */
unsigned int recorder_refused(const struct recorder *r, pid_t *ret_first);
/* Why accessed bits are not watched although they should be; NULL: they are. */
const char *recorder_not_accessed(const struct recorder *r);
/* Why its samples are not in the trace; NULL: they are, or none were asked for. */
const char *recorder_not_imported(const struct recorder *r);
u64 recorder_clear_ns(const struct recorder *r); /* CPU time of the longest clear of a process */
u64 recorder_elapsed_ns(const struct recorder *r); /* recorded: without first and last pictures */
u64 recorder_resident(const struct recorder *r); /* bytes, in the latest picture of all targets */
u64 recorder_events(const struct recorder *r);
u64 recorder_lost(const struct recorder *r);
u64 recorder_map_bytes(const struct recorder *r); /* kernel memory of the BPF maps */
u64 recorder_picture_ns(const struct recorder *r); /* time of the latest picture of all targets */
u64 recorder_walk_ns(const struct recorder *r); /* CPU time of reading the pages */
u64 recorder_hold_ns(const struct recorder *r); /* longest hold of the mmap lock; 0: pagemap */
/* What was not recording: the pictures before and after it, and naming the stacks. */
u64 recorder_first_ns(const struct recorder *r);
u64 recorder_last_ns(const struct recorder *r);
u64 recorder_names_ns(const struct recorder *r);
u64 recorder_lost_rings(const struct recorder *r);
/* Addresses whose file stopped the reader of names. */
u64 recorder_unnamed(const struct recorder *r);
/* Why mapping calls, or faults where calls is 0, are not seen although programs are loaded; NULL:
 * they are. */
const char *recorder_unseen(const struct recorder *r, int calls);
/* Addresses, stacks and files: losses that cost no event. */
u64 recorder_lost_names(const struct recorder *r);

#endif
