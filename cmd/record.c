/* SPDX-License-Identifier: GPL-2.0-only
 * record: attach, take a first picture, follow, take a last one, name the stacks. The target is
 * never stopped and no probe is put on its allocator. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "lib/capture/session.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/symbolize.h"

#define MAX_PIDS   2048
#define MAX_SPACES 4096

struct options {
	pid_t pids[MAX_PIDS];
	int nr_pids, tree, dry_run;
	const char *output;
	u64 duration_ns, max_size;
	char **argv; /* CMD */
};

struct recording {
	struct options *o;
	struct trace_writer *w;
	struct session *s;
	u32 walk;
	struct picture {
		u32 space;
		struct snapshot *shot; /* the latest, not yet written */
	} * pictures;
	u32 nr_pictures;
	u32 refused; /* pictures the kernel refused: a protected process */
	u64 next_walk_ns, walk_cost_ns;
	pid_t child;
	int child_status, end;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

static u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

/* "5s", "200ms", "1m", "5" (seconds). 0 on nonsense. */
static u64 parse_duration(const char *text)
{
	char *end;
	double v = strtod(text, &end);
	double unit = 1e9;

	if (!strcmp(end, "ms"))
		unit = 1e6;
	else if (!strcmp(end, "m"))
		unit = 60e9;
	else if (*end && strcmp(end, "s"))
		return 0;
	return v > 0 && v < 1e7 ? (u64)(v * unit) : 0;
}

static u64 parse_size(const char *text)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);

	if (!isdigit((unsigned char)*text) || v >> 32)
		return 0;
	switch (toupper((unsigned char)*end)) {
	case 'G':
		v <<= 10; /* fall through */
	case 'M':
		v <<= 10; /* fall through */
	case 'K':
		v <<= 10;
		end++;
		break;
	default:
		break;
	}
	return *end ? 0 : v;
}

static int parse_pids(struct options *o, const char *text)
{
	char *end;

	for (; *text; text = *end ? end + 1 : end) {
		long v = strtol(text, &end, 10);

		int i;

		if (end == text || (*end && (*end != ',' || !end[1])) || v <= 0 || v > 1 << 22 ||
		    o->nr_pids == MAX_PIDS)
			return -1;
		for (i = 0; i < o->nr_pids && o->pids[i] != v; i++)
			;
		if (i == o->nr_pids)
			o->pids[o->nr_pids++] = (pid_t)v;
	}
	return 0;
}

/* Every process of a cgroup, v1 or v2, named by its folder. */
static int add_cgroup(struct options *o, const char *dir)
{
	char path[4200];
	long pid;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	if (!f)
		return fail("record", "%s: %s: give the cgroup's folder under /sys/fs/cgroup", path,
			    strerror(errno));
	while (o->nr_pids < MAX_PIDS && fscanf(f, "%ld", &pid) == 1)
		if (pid > 0 && pid != getpid())
			o->pids[o->nr_pids++] = (pid_t)pid;
	fclose(f);
	return o->nr_pids ? 0 : fail("record", "%s: no process in this cgroup", dir);
}

/* comm NULL: every process that has memory of its own. */
static void add_comm(struct options *o, const char *comm)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	char path[300], have[64];

	while (dir && (d = readdir(dir))) {
		FILE *f;

		if (!isdigit((unsigned char)d->d_name[0]) || o->nr_pids == MAX_PIDS)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", d->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(have, sizeof(have), f)) {
			have[strcspn(have, "\n")] = 0;
			if ((comm ? !strcmp(have, comm)
				  : snapshot_thread((pid_t)atol(d->d_name)) > 0) &&
			    atol(d->d_name) != getpid())
				o->pids[o->nr_pids++] = (pid_t)atol(d->d_name);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
}

static int usage(void)
{
	fputs("usage: memprov record -p PID[,PID] | --comm NAME | --cgroup DIR | -a | -- CMD "
	      "ARG...\n"
	      "                      [-o FILE] [-w DURATION] [--tree] [--max-size SIZE] "
	      "[--dry-run] [-v]\n",
	      stderr);
	return EXIT_USAGE;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"pid", required_argument, NULL, 'p'},
		{"output", required_argument, NULL, 'o'},
		{"comm", required_argument, NULL, 'c'},
		{"cgroup", required_argument, NULL, 'g'},
		{"all", no_argument, NULL, 'a'},
		{"tree", no_argument, NULL, 't'},
		{"max-size", required_argument, NULL, 'm'},
		{"dry-run", no_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "+p:o:w:va", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			if (parse_pids(o, optarg)) {
				fail("record", "-p %s: not a list of process ids", optarg);
				return usage();
			}
			break;
		case 'c':
			add_comm(o, optarg);
			if (!o->nr_pids)
				return fail("record", "no process named %s: check with ps -e",
					    optarg);
			break;
		case 'g':
			if (add_cgroup(o, optarg))
				return 1;
			o->tree = 1;
			break;
		case 'a':
			add_comm(o, NULL);
			o->tree = 1;
			break;
		case 'o':
			o->output = optarg;
			break;
		case 'w':
			o->duration_ns = parse_duration(optarg);
			if (!o->duration_ns) {
				fail("record", "-w %s: not a duration; try 10s or 500ms", optarg);
				return usage();
			}
			break;
		case 't':
			o->tree = 1;
			break;
		case 'm':
			o->max_size = parse_size(optarg);
			if (!o->max_size) {
				fail("record", "--max-size %s: not a size; try 512M", optarg);
				return usage();
			}
			break;
		case 'n':
			o->dry_run = 1;
			break;
		case 'v':
			session_verbose(1);
			break;
		default:
			return usage();
		}
	}
	o->argv = optind < argc ? argv + optind : NULL;
	return (o->nr_pids > 0) == (o->argv != NULL) ? usage() : 0;
}

static int check_pids(const struct options *o)
{
	int i, has;

	for (i = 0; i < o->nr_pids; i++) {
		has = snapshot_thread(o->pids[i]);
		if (has < 0)
			return fail("record", "no process %d: check the PID with ps",
				    (int)o->pids[i]);
		if (!has)
			return fail("record",
				    "process %d has no memory of its own: a kernel thread or "
				    "already exited",
				    (int)o->pids[i]);
	}
	return 0;
}

static int put(struct recording *r, u16 type, const void *body, size_t len)
{
	struct {
		struct mp_hdr hdr;
		u8 body[64];
	} rec = {.hdr = {.type = type,
			 .size = (u16)(sizeof(rec.hdr) + len),
			 .seq = r->s ? session_seq(r->s) : 0,
			 .time_ns = now_ns()}};

	memcpy(rec.body, body, len);
	return trace_write(r->w, &rec.hdr);
}

static int put_hook(struct recording *r, const char *cap, const char *provider, const char *level,
		    const char *reason)
{
	struct mp_ev_hook h = {
		.capability = (u32)trace_string(r->w, cap),
		.provider = (u32)trace_string(r->w, provider),
		.stability = (u32)trace_string(r->w, level),
		.reason = (u32)trace_string(r->w, reason),
	};

	return put(r, MP_EV_HOOK, &h, sizeof(h));
}

static int put_session(struct recording *r)
{
	struct mp_ev_session s = {.page_size = MP_PAGE_SIZE};
	struct utsname u;
	struct timespec ts;
	int err;

	clock_gettime(CLOCK_REALTIME, &ts);
	uname(&u);
	s.start_realtime = (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
	s.host = (u32)trace_string(r->w, u.nodename);
	s.kernel = (u32)trace_string(r->w, u.release);
	s.arch = (u32)trace_string(r->w, u.machine);
	s.nr_cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN);
	err = put(r, MP_EV_SESSION, &s, sizeof(s));
	if (!err)
		err = put_hook(r, "map", "sys_enter/exit", "tracepoint", NULL);
	if (!err)
		err = put_hook(r, "fault", "tracepoint machine", "tracepoint",
			       "flows are inferred: no function hooks in this version");
	if (!err)
		err = put_hook(r, "snapshot", "pagemap", "UAPI",
			       "the BPF page-table walk is not built");
	if (!err)
		err = put_hook(r, "alloc", NULL, NULL, "no allocator probe: owners are mappings");
	return err;
}

static u64 seq_of(void *s)
{
	return session_seq(s);
}

static struct picture *picture_of(struct recording *r, u32 space)
{
	u32 i;

	for (i = 0; i < r->nr_pictures; i++)
		if (r->pictures[i].space == space)
			return &r->pictures[i];
	if (r->nr_pictures == MAX_SPACES)
		return NULL;
	r->pictures[r->nr_pictures].space = space;
	return &r->pictures[r->nr_pictures++];
}

static int take(void *ctx, pid_t pid, u32 space)
{
	struct recording *r = ctx;
	struct picture *p = picture_of(r, space);
	struct snapshot *shot;
	int err;

	if (!p)
		return 0;
	err = snapshot_take(pid, space, r->walk, r->w, seq_of, r->s, &shot);
	if (err == -ESRCH || err == -ENOENT)
		return 0; /* it went while we looked */
	if (err == -EACCES) {
		r->refused++;
		return 0;
	}
	if (err)
		return err;
	snapshot_free(&p->shot);
	p->shot = shot;
	r->walk_cost_ns += snapshot_cost_ns(shot);
	return 0;
}

static int take_all(struct recording *r)
{
	u64 period;
	int err;

	r->walk_cost_ns = 0;
	err = session_each(r->s, take, r);
	/* At most 2% of a core for the rolling picture. */
	period = r->walk_cost_ns * 50;
	r->next_walk_ns = now_ns() + (period > 1000000000ull ? period : 1000000000ull);
	return err;
}

static int write_pictures(struct recording *r)
{
	u32 i;
	int err = 0;

	for (i = 0; i < r->nr_pictures && !err; i++) {
		if (r->pictures[i].shot)
			err = snapshot_write(r->pictures[i].shot, r->w);
		snapshot_free(&r->pictures[i].shot);
	}
	return err;
}

/* Child that waits for a byte, then becomes CMD. *ret_fd wakes it; its exec error comes back on
 * *ret_err. */
static pid_t spawn(char **argv, int *ret_fd, int *ret_err)
{
	int go[2], bad[2];
	pid_t pid;
	char c;

	if (pipe2(go, O_CLOEXEC) || pipe2(bad, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1) {
			execvp(argv[0], argv);
			c = (char)errno;
			if (write(bad[1], &c, 1) < 0)
				_exit(125);
			_exit(errno == ENOENT ? 127 : 126);
		}
		_exit(125);
	}
	close(go[0]);
	close(bad[1]);
	*ret_fd = go[1];
	*ret_err = bad[0];
	return pid;
}

static int alive(struct recording *r)
{
	if (r->child)
		return waitpid(r->child, &r->child_status, WNOHANG) != r->child;
	return session_alive(r->s);
}

static int follow(struct recording *r, u64 began)
{
	int err = 0, tick = 0, tty = isatty(2);

	while (!err) {
		u64 now = now_ns();

		if (stop) {
			r->end = MP_END_SIGNAL;
			break;
		}
		if (r->o->duration_ns && now - began >= r->o->duration_ns) {
			r->end = MP_END_DURATION;
			break;
		}
		if (!alive(r)) {
			r->end = MP_END_TARGET;
			break;
		}
		err = session_poll(r->s, 50);
		if (!err && now >= r->next_walk_ns) {
			r->walk++;
			err = take_all(r);
			if (!err)
				err = trace_writer_flush(r->w);
		}
		if (tty && ++tick % 20 == 0)
			fprintf(stderr, "\r%6.1f s  %llu events  lost %llu  %llu KiB ",
				(double)(now - began) / 1e9,
				(unsigned long long)session_events(r->s),
				(unsigned long long)session_lost(r->s),
				(unsigned long long)trace_writer_bytes(r->w) / 1024);
	}
	if (tty && tick >= 20)
		fputc('\n', stderr);
	if (err == -EFBIG) {
		fail("record", "--max-size reached: stopped here, the file is complete up to now");
		r->end = MP_END_SIZE;
		return 0;
	}
	return err;
}

static int put_file_full(struct recording *r)
{
	struct mp_ev_loss loss = {
		.count = 1,
		.cause = MP_LOSS_FILE_FULL,
		.cls = MP_CLASS_MAX,
	};

	return put(r, MP_EV_LOSS, &loss, sizeof(loss));
}

static int finish(struct recording *r)
{
	struct mp_ev_end end = {.reason = (u64)r->end};
	u64 lost = session_lost(r->s);
	int err;

	r->walk++;
	err = r->end == MP_END_TARGET || r->end == MP_END_SIZE ? 0 : take_all(r);
	if (!err)
		err = session_stop(r->s);
	if (!err || err == -EFBIG)
		err = write_pictures(r);
	if (!err)
		err = trace_writer_flush(r->w);
	if (!err)
		err = symbolize(r->o->output, r->w);
	/* The writer keeps room for these two behind a full file. */
	if (err == -EFBIG) {
		end.reason = r->end = MP_END_SIZE;
		err = put_file_full(r);
	}
	if (!err)
		err = put(r, MP_EV_END, &end, sizeof(end));
	if (!err)
		fprintf(stderr, "memprov: wrote %s: %llu events, lost %llu, %llu KiB\n",
			r->o->output, (unsigned long long)session_events(r->s),
			(unsigned long long)lost,
			(unsigned long long)trace_writer_bytes(r->w) / 1024);
	return err;
}

static int start(struct recording *r, int go_fd)
{
	int i, err = 0;
	s64 space;

	for (i = 0; i < r->o->nr_pids && !err; i++) {
		if (snapshot_thread(r->o->pids[i]) <= 0)
			continue; /* gone since it was listed */
		space = session_add(r->s, r->o->pids[i]);
		err = space < 0 ? (int)space : 0;
	}
	if (!err && r->child) {
		space = session_add(r->s, r->child);
		err = space < 0 ? (int)space : 0;
	}
	if (err)
		return err;
	if (!r->child) {
		r->walk++;
		err = take_all(r);
		if (!err && r->refused) {
			fail("record",
			     "the kernel lets nobody look into %u of the processes: left out",
			     r->refused);
			if (!r->nr_pictures || r->refused >= r->nr_pictures)
				err = -EACCES;
		}
		if (!err)
			err = write_pictures(r);
		/* A recorder killed from now on leaves a picture. */
		if (!err)
			err = trace_writer_flush(r->w);
	} else if (write(go_fd, "g", 1) != 1) {
		err = -errno;
	}
	return err;
}

static int exec_failed(struct recording *r, int err_fd)
{
	char c;

	if (read(err_fd, &c, 1) != 1)
		return 0;
	waitpid(r->child, &r->child_status, 0);
	fail("record", "%s: %s: check the command's path", r->o->argv[0], strerror(c));
	return WIFEXITED(r->child_status) ? WEXITSTATUS(r->child_status) : 126;
}

static int child_exit(const struct recording *r)
{
	if (!r->child || r->end != MP_END_TARGET)
		return 0;
	return WIFSIGNALED(r->child_status) ? 128 + WTERMSIG(r->child_status)
					    : WEXITSTATUS(r->child_status);
}

static int run(struct recording *r)
{
	char msg[256] = "";
	int go = -1, bad = -1, err, status = 0;
	u64 lost = 0;

	err = put_session(r);
	if (!err)
		err = session_open(r->w, r->o->tree || r->o->argv, msg, sizeof(msg), &r->s);
	if (err)
		return fail("record", "%s", msg[0] ? msg : strerror(-err));
	if (r->o->argv)
		r->child = spawn(r->o->argv, &go, &bad);
	if (r->child < 0)
		return fail("record", "cannot start %s: %s", r->o->argv[0], strerror(errno));
	err = start(r, go);
	if (!err && r->child)
		status = exec_failed(r, bad);
	if (!err && !status) {
		fprintf(stderr, "memprov: recording %d to %s; Ctrl-C ends\n",
			(int)(r->child ? r->child : r->o->pids[0]), r->o->output);
		err = follow(r, now_ns());
		if (!err)
			err = finish(r);
		lost = session_lost(r->s);
		status = child_exit(r);
	}
	if (err == -EPERM)
		return fail("record", "no page frame numbers: run as root or with CAP_SYS_ADMIN "
				      "and CAP_SYS_PTRACE");
	if (err)
		return fail("record", "%s: %s", r->o->output, strerror(-err));
	return status ? status : lost || r->end == MP_END_SIZE ? EXIT_LOSS : 0;
}

int cmd_record(int argc, char **argv)
{
	static struct options o = {.output = "memprov.data", .max_size = 2ull << 30};
	struct recording r = {.o = &o};
	struct sigaction sa = {.sa_handler = on_signal};
	int err = parse(&o, argc, argv);

	if (err)
		return err;
	if (check_pids(&o))
		return 1;
	if (o.dry_run) {
		puts("no allocator probe; one tracepoint program per fault (about 2 us on this "
		     "kind of machine)\n"
		     "and per mapping call; one walk of the page tables a second, at most 2% of a "
		     "core");
		return 0;
	}
	r.pictures = calloc(MAX_SPACES, sizeof(*r.pictures));
	if (!r.pictures)
		return fail("record", "out of memory");
	err = trace_writer_open(o.output, o.max_size, &r.w);
	if (err) {
		free(r.pictures);
		return fail("record", "cannot create %s: %s", o.output, strerror(-err));
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	err = run(&r);
	session_free(&r.s);
	trace_writer_close(&r.w);
	free(r.pictures);
	return err;
}
