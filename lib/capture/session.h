/* SPDX-License-Identifier: GPL-2.0-only
 * A live recording: BPF programs loaded and attached, rings drained into a trace. The only user of
 * libbpf. Order of teardown: detach, drain, count losses, free. */
#ifndef MP_CAPTURE_SESSION_H
#define MP_CAPTURE_SESSION_H

#include <sys/types.h>
#include "lib/trace/trace.h"

struct bank_fds;
struct bpf_object;
struct bpf_program;
struct life;
struct mp_python;
struct session;

#define SESSION_RING_MIN 65536u

struct session_opts {
	int follow; /* children and their children join the recording */
	int may_be_blind; /* without privilege or on an old kernel: no events, msg says why */
	u64 ring_bytes; /* of the ring of faults, 0: as built */
};

/* Load and attach. On failure returns -errno and puts one line with reason and remedy into msg. */
int session_open(struct trace_writer *w, const struct session_opts *o, char *msg, size_t msg_len,
		 struct session **ret_s);
/* Nothing but pictures: calls, faults and forks are not seen. */
int session_blind(const struct session *s);
/* Follow a process from now on. Returns its space id (> 0) or -errno. */
s64 session_add(struct session *s, pid_t pid);
/* The same of one that has the address space of another, followed one. 0 or -errno. */
int session_join(struct session *s, pid_t pid, pid_t with);
/* While fn is set records go to it and not into the trace; session_forget ends that and makes the
 * session as it was when opened. */
void session_divert(struct session *s, void (*fn)(void *ctx, const struct mp_hdr *rec), void *ctx);
int session_follow(struct session *s, pid_t pid, u32 space);
void session_forget(struct session *s);
/* From now on FAULT records are not written: the kernel's events are not what they must be. */
void session_drop_faults(struct session *s);
/* Shows fn every record of the rings that goes into the trace; non-zero ends the recording. Four
 * may watch. */
void session_watch(struct session *s, int (*fn)(void *ctx, const struct mp_hdr *rec), void *ctx);
/* session_poll() also returns when this fd is readable; -1: none. */
void session_wake_by(struct session *s, int fd);
/* The maps of the unwinder. */
struct bank_fds session_banks(struct session *s);
/* Is this process followed? */
int session_has(const struct session *s, pid_t pid);
/* Do faults show only where they allocate? Known once a program has run. */
int session_counters_late(const struct session *s);
/* The hooks that not every kernel has. NULL: nothing is loaded. */
struct life *session_life(const struct session *s);
/* What frames of pages are found by; until then moves of pages are not seen. */
void session_frames(struct session *s, u64 vmemmap, u64 frame_mask);
/* The recording's order: the number of the last event that drew one. */
u64 session_seq(const struct session *s);
/* Mapping calls of a space so far, entries and returns. */
u64 session_map_ops(const struct session *s, u32 space);
/* Calls fn once for each space that is alive, with one of its processes. Stops when fn returns
 * non-zero. */
int session_each(struct session *s, int (*fn)(void *ctx, pid_t pid, u32 space), void *ctx);
/* Is any process still followed? A zombie is not. */
int session_alive(struct session *s);
/* Drain both rings, waiting at most timeout_ms. 0 or -errno (of the sink: -EFBIG, -ENOSPC). */
int session_poll(struct session *s, int timeout_ms);
u64 session_events(const struct session *s);
u64 session_map_bytes(const struct session *s); /* kernel memory of the BPF maps */
u64 session_lost_rings(const struct session *s); /* for want of room, of the lost */
u64 session_lost(const struct session *s); /* events */
u64 session_lost_names(const struct session *s); /* causes that cost no event */
/* A program that is attached by who asks for it. */
const struct bpf_program *session_program(const struct session *s, const char *name);
/* The space runs an interpreter of Python. */
int session_set_python(struct session *s, u32 space, const struct mp_python *p);
/* The descriptor of a map, or -errno. */
int session_map(const struct session *s, const char *name);
/* Another object, opened and not loaded, is to work on this one's maps but for scratch space. */
int session_share(struct session *s, struct bpf_object *obj);
/* It is loaded: its ring is drained with the others, its programs' misses are losses of class cls.
 * NULL: it is about to go. */
int session_adopt(struct session *s, struct bpf_object *obj, int ring_fd, enum mp_class cls);
/* What class cls of a space lost up to now. */
int session_lose(struct session *s, u32 space, enum mp_loss_cause cause, enum mp_class cls);
/* User space has lost something too. */
void session_count(struct session *s, enum mp_loss_cause cause, u64 count);
/* LOSS records for what was lost since the last call. */
int session_write_losses(struct session *s);
/* Polls until the mapping calls under way now have returned: those that have not by then are a
 * loss.
 */
int session_settle(struct session *s, int timeout_ms);
/* Detach and drain what is left, then write LOSS records. */
int session_stop(struct session *s);
void session_free(struct session **s);
/* Text of libbpf's own messages (-v). */
void session_verbose(int on);

#endif
