/* SPDX-License-Identifier: GPL-2.0-only
 * record: options, the status line and the exit status; lib/capture/recorder.c does the rest. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/args.h"
#include "cmd/cmd.h"
#include "cmd/dryrun.h"
#include "cmd/stop.h"
#include "cmd/target.h"
#include "lib/capture/allocs.h"
#include "lib/capture/clock.h"
#include "lib/capture/flight.h"
#include "lib/capture/group.h"
#include "lib/capture/privilege.h"
#include "lib/capture/recorder.h"
#include "lib/capture/session.h"

#define FLIGHT_MIN   (1u << 20)
#define FLIGHT_BYTES (64u << 20)
#define STATUS_NS    500000000ull
#define CLEAR_SHARE  20 /* of the time at most one part is spent on clearing accessed bits */
#define SYMBOL_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."

struct options {
	struct target target;
	int dry_run, verbose, quiet, dashes; /* -- before CMD */
	const char *output;
	u64 duration_ns, max_size, ring_bytes;
	struct allocs_opts alloc;
	int strict, accessed;
	u64 every_ns;
	u64 flight_bytes; /* --ring: 0, to a file as it goes */
	const char *triggers[TRIGGERS_MAX];
	unsigned int nr_triggers;
	struct flight *flight;
	const char *samples;
};

static volatile sig_atomic_t stop, dump;

static void on_signal(int sig)
{
	stop = sig;
}

static void on_dump(int sig)
{
	(void)sig;
	dump = 1;
}

static int parse_alloc(struct options *o, const char *text)
{
	int i;

	for (i = 0; i < ALLOC_MODES; i++)
		if (!strcmp(alloc_mode_names[i], text)) {
			o->alloc.mode = (enum alloc_mode)i;
			return 0;
		}
	return -EINVAL;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		TARGET_LONG,
		{"quiet", no_argument, NULL, 'q'},
		{"output", required_argument, NULL, 'o'},
		{"max-size", required_argument, NULL, 'm'},
		{"dry-run", no_argument, NULL, 'n'},
		{"buffer", required_argument, NULL, 'r'},
		{"ring", required_argument, NULL, 'R'},
		{"trigger", required_argument, NULL, 'T'},
		{"strict", no_argument, NULL, 's'},
		{"alloc", required_argument, NULL, 'A'},
		{"sample-bytes", required_argument, NULL, 'B'},
		{"min-size", required_argument, NULL, 'M'},
		{"alloc-symbols", required_argument, NULL, 'S'},
		{"access", required_argument, NULL, 'C'},
		{"every", required_argument, NULL, 'E'},
		{"samples", required_argument, NULL, 'I'},
		{NULL, 0, NULL, 0},
	};
	int c, status;

	while ((c = getopt_long(argc, argv, "+" TARGET_SHORT "o:w:qv", longs, NULL)) != -1) {
		switch (c) {
		case 'o':
			o->output = optarg;
			break;
		case 'w':
			o->duration_ns = parse_duration(optarg);
			if (!o->duration_ns)
				return misuse("record", "-w %s: not a duration; try 10s or 500ms",
					      optarg);
			break;
		case 'm':
			o->max_size = parse_size(optarg);
			if (!o->max_size)
				return misuse("record", "--max-size %s: not a size; try 512M",
					      optarg);
			break;
		case 'r':
			o->ring_bytes = parse_size(optarg);
			if (o->ring_bytes < SESSION_RING_MIN || o->ring_bytes > 1u << 30)
				return misuse("record", "--buffer %s: not a size from %uK to 1G",
					      optarg, SESSION_RING_MIN >> 10);
			break;
		case 'R':
			o->flight_bytes = parse_size(optarg);
			if (o->flight_bytes < FLIGHT_MIN)
				return misuse("record", "--ring %s: not a size from %uM; try 64M",
					      optarg, FLIGHT_MIN >> 20);
			break;
		case 'T':
			if (o->nr_triggers == TRIGGERS_MAX)
				return misuse("record", "--trigger %s: at most %d", optarg,
					      TRIGGERS_MAX);
			o->triggers[o->nr_triggers++] = optarg;
			break;
		case 's':
			o->strict = 1;
			break;
		case 'A':
			if (parse_alloc(o, optarg))
				return misuse("record",
					      "--alloc %s: not auto, adapter, uprobe or map",
					      optarg);
			break;
		case 'B':
			o->alloc.sample_bytes = parse_size(optarg);
			if (!o->alloc.sample_bytes)
				return misuse("record",
					      "--sample-bytes %s: not a size; try 64K, or 1 for "
					      "every call",
					      optarg);
			break;
		case 'M':
			o->alloc.min_bytes = parse_size(optarg);
			if (!o->alloc.min_bytes)
				return misuse("record", "--min-size %s: not a size; try 1K",
					      optarg);
			break;
		case 'S':
			if (!*optarg || optarg[strspn(optarg, SYMBOL_CHARS ",")])
				return misuse("record",
					      "--alloc-symbols %s: not a list of prefixes; try "
					      "je_,mi_",
					      optarg);
			o->alloc.prefixes = optarg;
			break;
		case 'C':
			if (strcmp(optarg, "ptwalk") && strcmp(optarg, "faults"))
				return misuse("record", "--access %s: not ptwalk or faults",
					      optarg);
			o->accessed = !strcmp(optarg, "ptwalk");
			break;
		case 'I':
			o->samples = optarg;
			break;
		case 'E':
			o->every_ns = parse_duration(optarg);
			if (!o->every_ns)
				return misuse("record", "--every %s: not a duration; try 5s",
					      optarg);
			break;
		case 'n':
			o->dry_run = 1;
			break;
		case 'v':
			/* Once: what it costs; twice: libbpf's words, too. */
			session_verbose(o->verbose++);
			break;
		case 'q':
			o->quiet = 1;
			break;
		default:
			status = target_option(&o->target, "record", c, optarg);
			if (status)
				return status < 0 ? bad_option("record", longs, argv) : status;
		}
	}
	if ((o->alloc.min_bytes || o->alloc.prefixes) && o->alloc.mode != ALLOC_UPROBE)
		return misuse("record", "%s needs --alloc uprobe",
			      o->alloc.min_bytes ? "--min-size" : "--alloc-symbols");
	if (o->alloc.sample_bytes && o->alloc.mode != ALLOC_ADAPTER && o->alloc.mode != ALLOC_AUTO)
		return misuse("record", "--sample-bytes needs --alloc adapter or auto");
	if (!o->alloc.sample_bytes)
		o->alloc.sample_bytes = ALLOCS_SAMPLE_BYTES;
	if (o->every_ns && !o->accessed)
		return misuse("record", "--every needs --access ptwalk");
	if (o->nr_triggers && !o->flight_bytes)
		o->flight_bytes = FLIGHT_BYTES;
	o->target.argv = optind < argc ? argv + optind : NULL;
	o->dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	return target_one(&o->target, "record", NULL, 0);
}

/* The line that is drawn anew while recording, and while the last picture is taken. */
struct status {
	struct recorder *r;
	struct trace_writer *w;
	const char *doing; /* "" while recording */
	u64 next_ns; /* 0: nobody looks */
};

static void draw(struct status *s)
{
	const struct recorder *r = s->r;

	fprintf(stderr, "\r%.1f s  %llu events  lost %llu  %llu KiB  resident %.2f MiB%s\033[K",
		(double)recorder_elapsed_ns(r) / 1e9, (unsigned long long)recorder_events(r),
		(unsigned long long)recorder_lost(r),
		(unsigned long long)trace_writer_bytes(s->w) / 1024,
		(double)recorder_resident(r) / (1 << 20), s->doing);
	s->next_ns = now_ns() + STATUS_NS;
}

static void progress(void *ctx)
{
	struct status *s = ctx;

	if (s->next_ns && now_ns() >= s->next_ns)
		draw(s);
}

static int follow(struct recorder *r, struct status *s)
{
	int err = 0;

	while (!err && recorder_end(r) < 0) {
		err = recorder_turn(r);
		progress(s);
	}
	if (s->next_ns) {
		s->doing = "  ending: last picture, names of stacks";
		draw(s);
	}
	if (!err && recorder_end(r) == MP_END_SIZE)
		fail("record", "--max-size reached: stopped here, the file is complete up to now");
	return err;
}

static int failed(const struct options *o, int err, int published)
{
	if (err == -EACCES)
		return 1; /* nobody to look at: said above */
	if (!published && (err == -ENOSPC || err == -EFBIG))
		return fail("record", "%s: %s", o->output, trace_create_strerror(err));
	if (err == -ENOSPC)
		return fail("record",
			    "%s: no space left: the trace ends here and is readable; free some or "
			    "name a file elsewhere with -o",
			    o->output);
	return fail("record", "%s: %s", o->output, strerror(-err));
}

/* Why there is a file of a flight recorder, and how many there were. */
static void say_flight(const struct options *o, const struct recorder *r)
{
	const struct trigger_cause *c;
	unsigned int n = recorder_written(r, &c);

	if (c->kind == MP_TRIGGER_OOM)
		fprintf(stderr, "memprov: %u was chosen to be killed for want of memory%s%s\n",
			c->tgid, c->memcg ? ": limit of cgroup " : "", c->memcg ? c->memcg : "");
	else if (c->expr)
		fprintf(stderr, "memprov: %s: %llu\n", c->expr, (unsigned long long)c->value);
	fprintf(stderr, "memprov: wrote %s: %llu events, lost %llu, %llu KiB%s\n", o->output,
		(unsigned long long)recorder_events(r), (unsigned long long)recorder_lost(r),
		(unsigned long long)flight_bytes(o->flight) / 1024,
		n > 1 ? "; earlier ones are .old or gone" : "");
}

static void say_result(const struct options *o, const struct recorder *r,
		       const struct trace_writer *w)
{
	u64 programs, silent = recorder_silent(r, &programs);

	if (recorder_unnamed(r))
		fail("record",
		     "%llu addresses have no name: reading their file crashed or took too long",
		     (unsigned long long)recorder_unnamed(r));
	if (silent)
		fail("record",
		     "%llu of %llu programs did not load the adapter (static, set-user-ID or "
		     "started without LD_PRELOAD): their owners are mappings",
		     (unsigned long long)silent, (unsigned long long)programs);
	if (recorder_not_imported(r))
		fail("record", "--samples %s: not imported: %s", o->samples,
		     recorder_not_imported(r));
	if (recorder_unprobed(r))
		fail("record", "allocations not recorded: %s", recorder_unprobed(r));
	if (recorder_lost_rings(r))
		fail("record", "%llu events found no room in the rings: try a larger --buffer",
		     (unsigned long long)recorder_lost_rings(r));
	if (o->quiet)
		return;
	if (o->flight) {
		say_flight(o, r);
		return;
	}
	fprintf(stderr, "memprov: wrote %s: %llu events, lost %llu, %llu KiB\n", o->output,
		(unsigned long long)recorder_events(r), (unsigned long long)recorder_lost(r),
		(unsigned long long)trace_writer_bytes(w) / 1024);
}

/* Not all that is resident: the rings are mapped twice and counted with the maps. */
static unsigned long long own_kib(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void say_cost(const struct recorder *r)
{
	struct rusage self = {0};

	getrusage(RUSAGE_SELF, &self);
	fprintf(stderr,
		"memprov: cost: BPF maps %llu KiB, recorder %llu KiB and %.2f s of a core, "
		"last picture %.1f ms for %llu MiB resident, walk %.1f ms, lock %.2f ms\n",
		(unsigned long long)recorder_map_bytes(r) / 1024, own_kib(),
		(double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec) +
			(double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec) / 1e6,
		(double)recorder_picture_ns(r) / 1e6,
		(unsigned long long)recorder_resident(r) >> 20, (double)recorder_walk_ns(r) / 1e6,
		(double)recorder_hold_ns(r) / 1e6);
}

/* Time that is in no -w, and what took it. */
static void say_took(const char *what, u64 ns)
{
	if (ns >= 1000000000ull)
		fprintf(stderr, "memprov: %s took %.1f s\n", what, (double)ns / 1e9);
}

/* A slip of the hand makes the rest of the line a command: say what was meant. */
static void say_no_command(const struct options *o, int exec_error)
{
	char *const *argv = o->target.argv;
	char hint[128] = "check the command's path";
	int i;

	for (i = 1; argv[i] && argv[i][0] != '-'; i++)
		;
	if (argv[0][0] && !argv[0][strspn(argv[0], "0123456789,")])
		snprintf(hint, sizeof(hint), "did you mean -p %s?", argv[0]);
	else if (!o->dashes && argv[i])
		snprintf(hint, sizeof(hint),
			 "check the command's path; %s behind it would be the command's: options "
			 "of record come first",
			 argv[i]);
	fail("record", "%s: %s: %s", argv[0], strerror(exec_error), hint);
}

static int publish(const struct options *o, struct recorder *r, struct trace_writer *w)
{
	char who[256];
	int err = trace_writer_publish(w);

	if (err) {
		fail("record", "%s: %s", o->output, trace_create_strerror(err));
		return -EACCES;
	}
	if (o->quiet)
		return 0;
	say_took("the first picture", recorder_first_ns(r));
	target_name(&o->target, who, sizeof(who));
	fprintf(stderr, "memprov: recording %s to %s; %s\n", who, o->output,
		o->flight ? "in memory until Ctrl-C, SIGUSR2 or a trigger" : "Ctrl-C ends");
	return 0;
}

/* Each clear holds up the target's mapping calls and faults. */
static int too_often(const struct options *o, const struct recorder *r)
{
	u64 least = CLEAR_SHARE * recorder_clear_ns(r);

	if (!o->every_ns || o->every_ns >= least)
		return 0;
	return fail("record",
		    "--every %.0f ms: clearing takes %.1f ms, in which mapping calls wait: at "
		    "least %.0f ms",
		    (double)o->every_ns / 1e6, (double)recorder_clear_ns(r) / 1e6,
		    (double)least / 1e6 + 1);
}

static int run(const struct options *o, struct status *s)
{
	struct recorder *r = s->r;
	struct trace_writer *w = s->w;
	int err, published = 0;
	char who[256];

	if (o->alloc.mode == ALLOC_UPROBE && !o->target.argv) {
		target_name(&o->target, who, sizeof(who));
		say_probes(stderr, who);
	}
	err = recorder_start(r);

	target_refused(r, "record");
	if (recorder_not_accessed(r))
		fail("record", "--access ptwalk: accessed bits are not watched: %s",
		     recorder_not_accessed(r));
	if (!err && recorder_exec_error(r)) {
		say_no_command(o, recorder_exec_error(r));
		return recorder_status(r);
	}
	if (!err && too_often(o, r))
		return 1;
	if (!err)
		err = publish(o, r, w);
	if (!err) {
		published = 1;
		s->next_ns = !o->quiet && isatty(2) ? now_ns() + STATUS_NS : 0;
		err = follow(r, s);
	}
	if (!err)
		err = recorder_finish(r, o->output);
	if (s->next_ns)
		fputc('\n', stderr);
	if (!o->quiet) {
		say_took("the last picture", recorder_last_ns(r));
		say_took("naming the stacks", recorder_names_ns(r));
	}
	if (!err && o->verbose)
		say_cost(r);
	if (!err)
		say_result(o, r, w);
	if (recorder_end_command(r))
		fail("record", "%s (%d) goes on after SIGTERM: end it yourself", o->target.argv[0],
		     (int)recorder_pid(r));
	if (o->target.group && group_error(o->target.group)[0]) {
		fail("record", "%s", group_error(o->target.group));
		if (err)
			return 1;
	}
	if (err)
		return failed(o, err, published);
	if (recorder_status(r))
		return recorder_status(r);
	if (recorder_lost(r) || recorder_end(r) == MP_END_SIZE || recorder_not_accessed(r) ||
	    recorder_not_imported(r))
		return EXIT_LOSS;
	return o->strict && recorder_lost_names(r) ? EXIT_LOSS : 0;
}

/* The kernel's programs know processes by their numbers outside. */
static int in_pid_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino != 0xeffffffc;
}

/* Programs were loaded, and do not see what a child of ours did. */
static void say_unseen(const struct recorder *r)
{
	const char *calls = recorder_unseen(r, 1), *faults = recorder_unseen(r, 0);

	if (calls || faults)
		fail("record", "reduced mode, %s%s%s not seen: %s%s", calls ? "mapping calls" : "",
		     calls && faults ? " and " : "", faults ? "faults are" : "are",
		     calls ? calls : faults,
		     in_pid_namespace() ? ": memprov is in a PID namespace: run it outside" : "");
}

static int record(const struct options *o, struct trace_writer *w)
{
	struct status s = {.w = w, .doing = ""};
	const struct recorder_opts ropts = {
		.pids = o->target.pids,
		.nr_pids = o->target.nr_pids,
		.tree = o->target.tree,
		.group = o->target.group,
		.argv = o->target.argv,
		.path = o->output,
		.flight = o->flight,
		.dump = &dump,
		.user = o->target.user,
		.rules = o->target.names.rules,
		.nr_rules = o->target.names.nr,
		.ring_bytes = o->ring_bytes,
		.alloc = o->alloc,
		.accessed = o->accessed,
		.every_ns = o->every_ns,
		.samples = o->samples,
		.may_be_blind = 1,
		.duration_ns = o->duration_ns,
		.stop = &stop,
		.progress = progress,
		.progress_ctx = &s,
	};
	char msg[256] = "";
	int err = recorder_open(&ropts, w, msg, sizeof(msg), &s.r);

	if (err)
		return fail("record", "%s", msg[0] ? msg : strerror(-err));
	if (msg[0])
		fail("record", "reduced mode, pictures%s only: %s",
		     privilege_missing(NEED_BPF | NEED_PERFMON) ? " of your own processes" : "",
		     msg);
	say_unseen(s.r);
	err = run(o, &s);
	recorder_free(&s.r);
	return err;
}

/* The file is written when there is a reason, and by then it must be possible. */
static int open_flight(struct options *o, struct trace_writer **ret_w)
{
	struct sigaction sa = {.sa_handler = on_dump};
	struct trace_writer *probe = NULL;
	char msg[256] = "";
	const char *refused;
	unsigned int i;
	int err = trace_writer_open(o->output, o->max_size, &probe);

	trace_writer_close(&probe);
	if (!err)
		err = flight_new(o->output, o->flight_bytes, o->max_size, &o->flight);
	if (err) {
		fail("record", "%s: %s", o->output, trace_create_strerror(err));
		return 1;
	}
	for (i = 0; i < o->nr_triggers; i++)
		if (triggers_add(flight_triggers(o->flight), o->triggers[i], msg, sizeof(msg)))
			return misuse("record", "%s", msg);
	refused = flight_prepare();
	if (refused)
		fail("record", "%s", refused);
	sigaction(SIGUSR2, &sa, NULL);
	*ret_w = flight_writer(o->flight);
	return 0;
}

int cmd_record(int argc, char **argv)
{
	static struct options o = {.output = "memprov.data", .max_size = 2ull << 30};
	struct sigaction sa = {.sa_handler = on_signal};
	struct trace_writer *w = NULL;
	int err = parse(&o, argc, argv);

	if (err)
		return err;
	if (target_check(&o.target, "record"))
		return 1;
	if (o.dry_run)
		return dry_run(&o.target, o.alloc.mode == ALLOC_UPROBE);
	stop_by_signal(&sa); /* the first block may fill a file already */
	if (o.flight_bytes) {
		err = open_flight(&o, &w);
		if (!err)
			err = record(&o, w);
		flight_free(&o.flight);
		return err;
	}
	err = trace_writer_open(o.output, o.max_size, &w);
	if (err)
		return fail("record", "%s: %s", o.output, trace_create_strerror(err));
	err = record(&o, w);
	trace_writer_close(&w);
	return err;
}
