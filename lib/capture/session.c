/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "bpf/shared/config.h"
#include "bpf/shared/python.h"
#include "lib/capture/banks.h"
#include "lib/capture/clock.h"
#include "lib/capture/life.h"
#include "lib/capture/object.h"
#include "lib/capture/privilege.h"
#include "lib/capture/refusal.h"
#include "lib/capture/resources.h"
#include "lib/capture/session.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/spaces.h"
#include "memprov.skel.h"

struct session {
	struct memprov_bpf *skel;
	struct life *life; /* NULL: nothing is loaded */
	struct ring_buffer *topo;
	struct ring_buffer *detail;
	struct ring_buffer *more; /* of the object that joined, NULL: none has */
	struct bpf_object *joined;
	enum mp_class joined_class;
	struct trace_writer *w;
	int err; /* first failure of the sink, sticky */
	u64 events;
	/* Losses that are in the trace already. */
	u64 told[MP_LOSS_MAX], told_misses[MP_CLASS_MAX], told_resource;
	struct spaces spaces;
	/* Without privilege: nothing is loaded, the skeleton only keeps the numbers. */
	void (*divert)(void *ctx, const struct mp_hdr *rec);
	void *divert_ctx;
	struct {
		int (*fn)(void *ctx, const struct mp_hdr *rec);
		void *ctx;
	} watch[5];
	int wake_fd;
	int drop_faults;
	int blind;
	pid_t *pids; /* [space - 1] */
	u32 nr_pids;
	u32 settled; /* the epoch that session_settle ended */
	u64 unfinished; /* mapping calls of it still under way */
};

static int verbose;

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	return verbose ? vfprintf(stderr, fmt, ap) : 0;
}

void session_verbose(int on)
{
	verbose = on;
}

/* The ring carries comm inline; the file names it by id. */
static int write_space(struct session *s, const void *data)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_space ev;
	} rec;
	char comm[17] = "";
	s64 id;

	memcpy(&rec, data, sizeof(rec));
	memcpy(comm, &rec.ev.comm0, 8);
	memcpy(comm + 8, &rec.ev.comm1, 8);
	id = trace_string(s->w, comm);
	if (id < 0)
		return (int)id;
	rec.ev.comm = (u32)id;
	return trace_write(s->w, &rec.hdr);
}

static int write_record(struct session *s, const struct mp_hdr *hdr)
{
	switch (hdr->type) {
	case MP_EV_SPACE:
		return write_space(s, hdr);
	case MP_EV_RESOURCE:
	case MP_EV_RESOURCE_END:
		return resource_record(s->w, hdr);
	default:
		return trace_write(s->w, hdr);
	}
}

static int end_space(struct session *s, u32 space);

/* Behind its record in the trace. */
static int note(struct session *s, const struct mp_hdr *rec)
{
	size_t i;
	int err = 0, ended;

	for (i = 0; i < sizeof(s->watch) / sizeof(s->watch[0]) && !err; i++)
		if (s->watch[i].fn)
			err = s->watch[i].fn(s->watch[i].ctx, rec);
	if (err)
		return err;
	ended = spaces_feed(&s->spaces, rec);
	return ended > 0 ? end_space(s, rec->space) : ended;
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct session *s = ctx;
	struct mp_hdr *hdr = data;
	int err;

	if (s->err || size < sizeof(*hdr) || size < hdr->size)
		return 0;
	if (s->divert) {
		s->divert(s->divert_ctx, hdr);
		return 0;
	}
	if (hdr->type == MP_EV_FAULT && s->drop_faults)
		return 0;
	err = hdr->type == MP_RING_CODE ? 0 : write_record(s, hdr);
	if (!err)
		err = note(s, hdr);
	if (err)
		s->err = err;
	s->events++;
	return 0;
}

/* No program is loaded: the object only keeps the numbers. */
static int open_blind(struct session *s, struct session **ret_s)
{
	int err;

	s->skel = object_idle();
	s->blind = 1;
	if (s->skel) {
		*ret_s = s;
		return 0;
	}
	err = -errno;
	session_free(&s);
	return err;
}

int session_open(struct trace_writer *w, const struct session_opts *o, char *msg, size_t msg_len,
		 struct session **ret_s)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->w = w;
	s->wake_fd = -1;
	libbpf_set_print(print_libbpf);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL & ~LIBBPF_STRICT_AUTO_RLIMIT_MEMLOCK);
	if (o->may_be_blind && privilege_missing(NEED_BPF | NEED_PERFMON)) {
		refusal_explain(-EPERM, msg, msg_len);
		return open_blind(s, ret_s);
	}
	msg[0] = 0;
	err = object_load(&(struct object_opts){o->follow, o->ring_bytes}, msg, msg_len, &s->skel,
			  &s->life);
	if (err && msg[0]) {
		session_free(&s);
		return err;
	}
	if (err)
		goto fail;
	s->topo = ring_buffer__new(bpf_map__fd(s->skel->maps.topo_ring), on_record, s, NULL);
	s->detail = ring_buffer__new(bpf_map__fd(s->skel->maps.detail_ring), on_record, s, NULL);
	if (!s->topo || !s->detail) {
		err = -errno;
		goto fail;
	}
	/* A child that reads names must not reach the counters of losses. */
	madvise(s->skel->bss, sizeof(*s->skel->bss), MADV_DONTFORK);
	*ret_s = s;
	return 0;
fail:
	refusal_explain(err, msg, msg_len);
	if (!s->skel && o->may_be_blind && refusal_lacks(REFUSAL_PROGRAMS))
		return open_blind(s, ret_s);
	session_free(&s);
	return err;
}

static void read_comm(pid_t pid, char *comm, size_t len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	comm[0] = 0;
	if (!f)
		return;
	if (fgets(comm, (int)len, f))
		comm[strcspn(comm, "\n")] = 0;
	fclose(f);
}

int session_blind(const struct session *s)
{
	return s->blind;
}

static int add_blind(struct session *s, pid_t pid)
{
	pid_t *pids = realloc(s->pids, (s->nr_pids + 1) * sizeof(*pids));

	if (!pids)
		return -ENOMEM;
	s->pids = pids;
	s->pids[s->nr_pids++] = pid;
	return 0;
}

/* Calls fn for each that lives, as session_each. */
static int each_blind(struct session *s, int (*fn)(void *ctx, pid_t pid, u32 space), void *ctx)
{
	int err = 0;
	u32 i;

	for (i = 0; i < s->nr_pids && !err; i++)
		if (snapshot_thread(s->pids[i]) > 0)
			err = fn(ctx, s->pids[i], i + 1);
	return err;
}

static int found_one(void *ctx, pid_t pid, u32 space)
{
	(void)ctx;
	(void)pid;
	(void)space;
	return 1;
}

/* The bit first: who is in targets must never be turned away. */
static int watch_process(struct session *s, pid_t pid, u32 target)
{
	u32 tgid = (u32)pid;

	__atomic_fetch_or(&s->skel->bss->mp_filter[tgid / 64 % MP_FILTER_WORDS],
			  1ull << (tgid % 64), __ATOMIC_SEQ_CST);
	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.targets), &tgid, &target, BPF_ANY))
		return -errno;
	return 0;
}

int session_follow(struct session *s, pid_t pid, u32 space)
{
	struct mp_space_loss loss = {0};

	if (bpf_map_update_elem(bpf_map__fd(s->skel->maps.space_loss), &space, &loss, BPF_ANY))
		return -errno;
	return watch_process(s, pid, space);
}

void session_divert(struct session *s, void (*fn)(void *ctx, const struct mp_hdr *rec), void *ctx)
{
	s->divert = fn;
	s->divert_ctx = ctx;
}

static void empty(int fd)
{
	u32 key;

	while (!bpf_map_get_next_key(fd, NULL, &key) && !bpf_map_delete_elem(fd, &key))
		;
}

void session_forget(struct session *s)
{
	ring_buffer__consume(s->topo);
	ring_buffer__consume(s->detail);
	s->divert = NULL;
	empty(bpf_map__fd(s->skel->maps.targets));
	empty(bpf_map__fd(s->skel->maps.space_loss));
	memset((void *)s->skel->bss->mp_losses, 0, sizeof(s->skel->bss->mp_losses));
	memset((void *)s->skel->bss->mp_filter, 0, sizeof(s->skel->bss->mp_filter));
	s->skel->bss->mp_next_space = 0;
	s->skel->bss->mp_losing = 1;
}

void session_drop_faults(struct session *s)
{
	s->drop_faults = 1;
}

/* Space of a followed process, 0: it is not. */
static u32 space_of(const struct session *s, pid_t pid)
{
	u32 tgid = (u32)pid, space;

	if (bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.targets), &tgid, &space))
		return 0;
	return space & ~MP_TARGET_JOINED;
}

/* Written before events may flow, so that none precedes its space. */
static int put_space(struct session *s, pid_t pid, u32 space, u32 cause)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_space ev;
	} rec = {0};
	char comm[32];
	s64 id;
	int err;

	read_comm(pid, comm, sizeof(comm));
	id = trace_string(s->w, comm);
	if (id < 0)
		return (int)id;
	rec.hdr.type = MP_EV_SPACE;
	rec.hdr.size = sizeof(rec);
	rec.hdr.space = space;
	rec.hdr.seq = __atomic_add_fetch(&s->skel->bss->mp_seq, 1, __ATOMIC_SEQ_CST);
	rec.hdr.time_ns = now_ns();
	rec.ev.tgid = (u32)pid;
	rec.ev.cause = cause;
	rec.ev.comm = (u32)id;
	err = trace_write(s->w, &rec.hdr);
	return err ? err : note(s, &rec.hdr);
}

/* Whoever makes the entry has the number: programs may draw at the same time. */
static int draw_space(struct session *s, u32 *ret_space)
{
	int fd = s->blind ? -1 : bpf_map__fd(s->skel->maps.space_loss), err = 0;
	struct mp_space_loss loss = {0};

	do {
		*ret_space = __atomic_add_fetch(&s->skel->bss->mp_next_space, 1, __ATOMIC_SEQ_CST);
		if (!s->blind)
			err = bpf_map_update_elem(fd, ret_space, &loss, BPF_NOEXIST) ? -errno : 0;
	} while (err == -EEXIST);
	return err;
}

s64 session_add(struct session *s, pid_t pid)
{
	u32 space;
	int err = draw_space(s, &space);

	if (!err)
		err = put_space(s, pid, space, MP_SPACE_ATTACH);
	if (!err)
		err = s->blind ? add_blind(s, pid) : watch_process(s, pid, space);
	return err ? err : (s64)space;
}

int session_join(struct session *s, pid_t pid, pid_t with)
{
	u32 space = s->blind ? 0 : space_of(s, with);
	int err = space ? put_space(s, pid, space, MP_SPACE_JOIN) : 0;

	return err || !space ? err : watch_process(s, pid, space | MP_TARGET_JOINED);
}

int session_has(const struct session *s, pid_t pid)
{
	u32 i;

	if (!s->blind)
		return space_of(s, pid) != 0;
	for (i = 0; i < s->nr_pids && s->pids[i] != pid; i++)
		;
	return i < s->nr_pids;
}

int session_counters_late(const struct session *s)
{
	return s->skel->bss->mp_counters_late != 0;
}

struct life *session_life(const struct session *s)
{
	return s->life;
}

void session_frames(struct session *s, u64 vmemmap, u64 frame_mask)
{
	if (s->blind)
		return;
	s->skel->bss->mp_frame_mask = frame_mask;
	s->skel->bss->mp_vmemmap = vmemmap;
}

u64 session_seq(const struct session *s)
{
	return __atomic_load_n(&s->skel->bss->mp_seq, __ATOMIC_SEQ_CST);
}

u64 session_map_ops(const struct session *s, u32 space)
{
	struct mp_space_loss loss = {0};

	if (!s->blind)
		bpf_map_lookup_elem(bpf_map__fd(s->skel->maps.space_loss), &space, &loss);
	return loss.map_ops;
}

int session_each(struct session *s, int (*fn)(void *ctx, pid_t pid, u32 space), void *ctx)
{
	int fd = bpf_map__fd(s->skel->maps.targets), err = 0;
	u32 key, next, *prev = NULL, space, seen[MP_MAX_TARGETS], n = 0, i;

	if (s->blind)
		return each_blind(s, fn, ctx);
	while (!err && n < MP_MAX_TARGETS && !bpf_map_get_next_key(fd, prev, &next)) {
		key = next;
		prev = &key;
		if (bpf_map_lookup_elem(fd, &key, &space))
			continue;
		space &= ~MP_TARGET_JOINED;
		for (i = 0; i < n && seen[i] != space; i++)
			;
		if (i < n)
			continue;
		seen[n++] = space;
		err = fn(ctx, (pid_t)key, space);
	}
	return err;
}

int session_alive(struct session *s)
{
	u32 key;

	if (s->blind)
		return each_blind(s, found_one, NULL);
	return !bpf_map_get_next_key(bpf_map__fd(s->skel->maps.targets), NULL, &key);
}

void session_watch(struct session *s, int (*fn)(void *ctx, const struct mp_hdr *rec), void *ctx)
{
	size_t i = 0;

	while (s->watch[i].fn)
		i++;
	s->watch[i].fn = fn;
	s->watch[i].ctx = ctx;
}

const struct bpf_program *session_program(const struct session *s, const char *name)
{
	return bpf_object__find_program_by_name(s->skel->obj, name);
}

int session_set_python(struct session *s, u32 space, const struct mp_python *p)
{
	/* A process that has gone, or one too many, has no such frames. */
	if (!bpf_map_update_elem(bpf_map__fd(s->skel->maps.pythons), &space, p, BPF_ANY))
		__atomic_fetch_add(&s->skel->bss->mp_pythons, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int session_map(const struct session *s, const char *name)
{
	return bpf_object__find_map_fd_by_name(s->skel->obj, name);
}

void session_wake_by(struct session *s, int fd)
{
	s->wake_fd = fd;
}

struct bank_fds session_banks(struct session *s)
{
	return (struct bank_fds){
		.ranges = bpf_map__fd(s->skel->maps.ranges),
		.spans = bpf_map__fd(s->skel->maps.spans),
		.banks = bpf_map__fd(s->skel->maps.banks),
		.losses = bpf_map__fd(s->skel->maps.space_loss),
		.generation = &s->skel->bss->mp_unwind_generation,
	};
}

int session_poll(struct session *s, int timeout_ms)
{
	struct pollfd wake[] = {
		{.fd = s->topo ? ring_buffer__epoll_fd(s->topo) : -1, .events = POLLIN},
		{.fd = s->detail ? ring_buffer__epoll_fd(s->detail) : -1, .events = POLLIN},
		{.fd = s->wake_fd, .events = POLLIN},
		{.fd = s->more ? ring_buffer__epoll_fd(s->more) : -1, .events = POLLIN},
	};
	int err;

	if (s->blind) {
		poll(NULL, 0, timeout_ms);
		return 0;
	}
	/* What is there already may have woken nobody: a ring that does not fill up does not. */
	err = ring_buffer__consume(s->topo);
	if (err >= 0)
		err = poll(wake, 4, timeout_ms) < 0 && errno != EINTR ? -errno : 0;
	if (err >= 0)
		err = ring_buffer__consume(s->detail);
	if (err >= 0)
		err = ring_buffer__consume(s->topo);
	if (err >= 0 && s->more)
		err = ring_buffer__consume(s->more);
	if (s->err)
		return s->err;
	return err < 0 ? err : 0;
}

u64 session_events(const struct session *s)
{
	return s->events;
}

static u64 map_bytes(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	return bytes;
}

u64 session_map_bytes(const struct session *s)
{
	struct bpf_map *map;
	u64 sum = 0;

	bpf_object__for_each_map(map, s->skel->obj) sum += map_bytes(bpf_map__fd(map));
	return sum;
}

u64 session_lost_rings(const struct session *s)
{
	return s->skel->bss->mp_losses[MP_LOSS_TOPO_RING] +
	       s->skel->bss->mp_losses[MP_LOSS_DETAIL_RING] +
	       s->skel->bss->mp_losses[MP_LOSS_ALLOC_RING];
}

static u64 sum_losses(const struct session *s, u32 of_events)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < MP_LOSS_MAX; i++)
		if ((MP_LOSSES_OF_EVENTS >> i & 1) == of_events)
			sum += s->skel->bss->mp_losses[i];
	return sum;
}

u64 session_lost(const struct session *s)
{
	u64 sum = s->unfinished + sum_losses(s, 1);
	int i;

	/* Programs that the kernel skipped are asked for now and then, and at the end. */
	for (i = 0; i < MP_CLASS_MAX; i++)
		sum += s->told_misses[i];
	return sum;
}

u64 session_lost_names(const struct session *s)
{
	return sum_losses(s, 0);
}

void session_count(struct session *s, enum mp_loss_cause cause, u64 count)
{
	__atomic_fetch_add(&s->skel->bss->mp_losses[cause], count, __ATOMIC_SEQ_CST);
}

static int write_loss(struct session *s, u32 space, u32 cause, u32 cls, u64 count)
{
	struct {
		struct mp_hdr hdr;
		struct mp_ev_loss ev;
	} rec = {0};

	rec.hdr.type = MP_EV_LOSS;
	rec.hdr.size = sizeof(rec);
	rec.hdr.space = space;
	rec.hdr.seq = session_seq(s);
	rec.hdr.time_ns = now_ns();
	rec.ev.count = count;
	rec.ev.cause = cause;
	rec.ev.cls = cls;
	return trace_write(s->w, &rec.hdr);
}

/* Programs the kernel skipped because one already ran on the cpu. Which space it concerned is
 * unknown: the class of the program says which numbers of every space it may have touched. */
static u64 misses_of(const struct bpf_program *prog)
{
	struct bpf_prog_info info = {0};
	u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &len) ? 0
									  : info.recursion_misses;
}

/* What is said of resources is no event of a class. */
static void recursion_misses(struct session *s, u64 *ret_by_class, u64 *ret_resource)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, s->skel->obj)
	{
		int map = !strncmp(bpf_program__name(prog), "on_sys", 6);
		int task = strstr("on_fork on_exec on_exit", bpf_program__name(prog)) != NULL;

		if (!strncmp(bpf_program__name(prog), "on_resource", 11)) {
			*ret_resource += misses_of(prog);
			continue;
		}
		ret_by_class[map    ? MP_CLASS_MAP
			     : task ? MP_CLASS_SPACE
				    : MP_CLASS_PAGE] += misses_of(prog);
	}
	if (!s->joined)
		return;
	bpf_object__for_each_program(prog, s->joined)
	{
		ret_by_class[s->joined_class] += misses_of(prog);
	}
}

/* One record for what the counter went up since it was told. */
static int tell(struct session *s, u32 space, u32 cause, u32 cls, u64 count, u64 *told)
{
	int err = 0;

	if (count > *told)
		err = write_loss(s, space, cause, cls, count - *told);
	if (!err)
		*told = count;
	return err;
}

/* What a space lost, by class. */
static int tell_space(struct session *s, u32 space, const struct mp_space_loss *loss)
{
	struct space_told *told = spaces_get(&s->spaces, space);
	int err = told ? 0 : -ENOMEM;
	u32 i;

	for (i = 0; i < MP_CLASS_MAX && !err; i++)
		err = tell(s, space, MP_LOSS_BY_CLASS, i, loss->lost[i], &told->lost[i]);
	return err;
}

static int is_space(void *ctx, pid_t pid, u32 space)
{
	(void)pid;
	return space == *(const u32 *)ctx;
}

/* The last member has left: what was lost of the space is told, and its entry given up. Only where
 * records of processes were lost may there be a member that we have not heard of. */
static int end_space(struct session *s, u32 space)
{
	int fd = bpf_map__fd(s->skel->maps.space_loss), err;
	struct mp_space_loss loss;

	if (s->blind || bpf_map_lookup_elem(fd, &space, &loss)) {
		spaces_forget(&s->spaces, space);
		return 0;
	}
	if (loss.lost[MP_CLASS_SPACE] && session_each(s, is_space, &space))
		return 0;
	err = tell_space(s, space, &loss);
	bpf_map_delete_elem(fd, &space);
	bpf_map_delete_elem(bpf_map__fd(s->skel->maps.pythons), &space);
	spaces_forget(&s->spaces, space);
	return err;
}

int session_write_losses(struct session *s)
{
	int fd = bpf_map__fd(s->skel->maps.space_loss), err = 0;
	u64 misses[MP_CLASS_MAX] = {0}, resource = 0;
	u32 key, next, *prev = NULL, i;

	if (s->blind)
		return 0;
	recursion_misses(s, misses, &resource);
	session_count(s, MP_LOSS_RESOURCE, resource - s->told_resource);
	s->told_resource = resource;
	/* By cause for the whole recording (space 0), by class for each space. */
	for (i = 0; i < MP_LOSS_MAX && !err; i++)
		err = tell(s, 0, i, MP_CLASS_MAX, s->skel->bss->mp_losses[i], &s->told[i]);
	for (i = 0; i < MP_CLASS_MAX && !err; i++)
		err = tell(s, 0, MP_LOSS_RECURSION, i, misses[i], &s->told_misses[i]);
	while (!err && !bpf_map_get_next_key(fd, prev, &next)) {
		struct mp_space_loss loss;

		key = next;
		prev = &key;
		if (!bpf_map_lookup_elem(fd, &key, &loss))
			err = tell_space(s, key, &loss);
	}
	return err;
}

int session_lose(struct session *s, u32 space, enum mp_loss_cause cause, enum mp_class cls)
{
	session_count(s, cause, 1);
	return write_loss(s, space, MP_LOSS_BY_CLASS, (u32)cls, 1);
}

/* The variables of both objects are the same headers' in the same order. */
static int is_same(const char *mine, const char *theirs)
{
	const char *a = strrchr(mine, '.'), *b = strrchr(theirs, '.');

	return a && b ? !strcmp(a, ".bss") && !strcmp(b, ".bss") : !strcmp(mine, theirs);
}

static u32 pages_of(const struct bpf_map *map)
{
	return (bpf_map__value_size(map) + MP_PAGE_SIZE - 1) / MP_PAGE_SIZE;
}

int session_share(struct session *s, struct bpf_object *obj)
{
	struct bpf_map *mine, *theirs;
	int err = 0;

	bpf_object__for_each_map(theirs, obj)
	{
		if (strstr(bpf_map__name(theirs), "_scratch"))
			continue;
		bpf_object__for_each_map(mine, s->skel->obj)
		{
			if (!is_same(bpf_map__name(mine), bpf_map__name(theirs)))
				continue;
			/* Variables may follow that the other has not. */
			if (pages_of(mine) != pages_of(theirs))
				return -EINVAL;
			err = err ? err : bpf_map__reuse_fd(theirs, bpf_map__fd(mine));
		}
	}
	return err;
}

int session_adopt(struct session *s, struct bpf_object *obj, int ring_fd, enum mp_class cls)
{
	ring_buffer__free(s->more);
	s->more = obj ? ring_buffer__new(ring_fd, on_record, s, NULL) : NULL;
	s->joined = obj;
	s->joined_class = cls;
	return obj && !s->more ? -errno : 0;
}

/* Mapping calls under way that entered before the recording settled, of all spaces. tell: each is a
 * loss. */
static int open_calls(struct session *s, int tell_them, u64 *ret_n)
{
	int fd = bpf_map__fd(s->skel->maps.space_loss), err = 0;
	u32 key, next, *prev = NULL, odd = s->settled & 1;
	struct mp_space_loss loss;

	for (*ret_n = 0; !err && !bpf_map_get_next_key(fd, prev, &next); prev = &key) {
		key = next;
		if (bpf_map_lookup_elem(fd, &key, &loss) || loss.open[odd] <= 0)
			continue;
		*ret_n += (u64)loss.open[odd];
		if (tell_them)
			err = write_loss(s, key, MP_LOSS_CALL_OPEN, MP_CLASS_MAP,
					 (u64)loss.open[odd]);
	}
	return err;
}

int session_settle(struct session *s, int timeout_ms)
{
	int err = 0;

	if (s->blind)
		return 0;
	s->settled = __atomic_fetch_add(&s->skel->bss->mp_epoch, 1, __ATOMIC_SEQ_CST);
	do
		err = open_calls(s, 0, &s->unfinished);
	while (!err && s->unfinished && timeout_ms-- > 0 && !(err = session_poll(s, 1)));
	return err;
}

int session_stop(struct session *s)
{
	int err;

	if (s->blind)
		return 0;
	memprov_bpf__detach(s->skel);
	life_detach(s->life);
	/* Topology first: a page event never waits for room that a munmap needs. */
	ring_buffer__consume(s->topo);
	ring_buffer__consume(s->detail);
	if (s->more)
		ring_buffer__consume(s->more);
	err = session_write_losses(s);
	if (!err && s->unfinished)
		err = open_calls(s, 1, &s->unfinished);
	return s->err ? s->err : err;
}

void session_free(struct session **s)
{
	if (!s || !*s)
		return;
	ring_buffer__free((*s)->topo);
	ring_buffer__free((*s)->detail);
	ring_buffer__free((*s)->more);
	life_free(&(*s)->life);
	memprov_bpf__destroy((*s)->skel);
	spaces_release(&(*s)->spaces);
	free((*s)->pids);
	free(*s);
	*s = NULL;
}
