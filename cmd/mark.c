/* SPDX-License-Identifier: GPL-2.0-only
 * mark: a marker into a running recording. Status 0 means that it is in the file. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "lib/capture/mark.h"
#include "lib/text/text.h"

#define MAX_SEEN 64

struct options {
	pid_t pid; /* 0: not given */
	const char *output, *text;
};

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"pid", required_argument, NULL, 'p'},
		{"output", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	const char *wrong;
	char *end;
	long pid;
	int c;

	while ((c = getopt_long(argc, argv, "p:o:", longs, NULL)) != -1) {
		switch (c) {
		case 'p':
			pid = strtol(optarg, &end, 10);
			if (end == optarg || *end || pid <= 0 || pid > 1 << 22)
				return misuse("mark", "-p %s: not a process id", optarg);
			o->pid = (pid_t)pid;
			break;
		case 'o':
			o->output = optarg;
			break;
		default:
			return usage(stderr, "mark");
		}
	}
	if (o->pid && o->output)
		return misuse("mark", "choose one of -p and -o");
	if (argc - optind != 1)
		return misuse("mark", argc == optind ? "what text?"
						     : "one text: put it in quotation marks");
	o->text = argv[optind];
	wrong = mark_refused(o->text, strlen(o->text));
	if (!wrong)
		return 0;
	fail("mark", "the text %s", wrong);
	return EXIT_USAGE;
}

/* Good until the next call. */
static const char *path_of(const struct recording_seen *s)
{
	static char plain[PATH_MAX];

	return text_copy(plain, sizeof(plain), s->path[0] ? s->path : "(no file)");
}

/* Which of the recordings that run is meant: its place, or -1 after a message. */
static int choose(const struct options *o, const struct recording_seen *seen, int nr, int others)
{
	char path[PATH_MAX] = "";
	int i, found = -1, matches = 0;

	if (o->output && !realpath(o->output, path)) {
		fail("mark", "%s: %s", o->output, strerror(errno));
		return -1;
	}
	for (i = 0; i < nr; i++) {
		if ((o->pid && seen[i].pid != o->pid) ||
		    (o->output && strcmp(seen[i].path, path) != 0))
			continue;
		found = i;
		matches++;
	}
	if (matches == 1)
		return found;
	if (!matches && !nr && others)
		fail("mark", "no recording of yours is running, %d of others: run as root", others);
	else if (!matches && !nr)
		fail("mark", "no recording is running: start one with memprov record");
	else if (!matches && o->pid)
		fail("mark", "process %d records nothing; these do:", (int)o->pid);
	else if (!matches)
		fail("mark", "nothing records to %s; these run:", o->output);
	else
		fail("mark", "%d recordings are running: choose one with -p or -o:", matches);
	for (i = 0; i < nr; i++)
		fprintf(stderr, "  -p %d  %s\n", (int)seen[i].pid, path_of(&seen[i]));
	return -1;
}

static int send_to(const struct recording_seen *s, const char *text)
{
	u64 at = 0;
	int err = mark_send(s->pid, text, &at);

	if (err == -ECONNREFUSED || err == -ECONNRESET)
		return fail("mark", "recording %d ended before it took the mark", (int)s->pid);
	if (err == -EACCES)
		return fail("mark", "recording %d is another user's: run as root", (int)s->pid);
	if (err == -ETIMEDOUT)
		return fail("mark", "recording %d does not answer: is it stopped?", (int)s->pid);
	if (err)
		return fail("mark", "recording %d cannot write it: %s", (int)s->pid,
			    strerror(-err));
	fprintf(stderr, "memprov: mark at %.3f s in %s (recorder %d)\n", (double)at / 1e9,
		path_of(s), (int)s->pid);
	return 0;
}

int cmd_mark(int argc, char **argv)
{
	struct options o = {0};
	struct recording_seen *seen;
	int nr, others, status = parse(&o, argc, argv);

	if (status)
		return status;
	seen = calloc(MAX_SEEN, sizeof(*seen));
	if (!seen)
		return fail("mark", "out of memory");
	nr = mark_list(seen, MAX_SEEN, &others);
	if (nr < 0) {
		status = fail("mark", "cannot look for recordings: %s", strerror(-nr));
	} else {
		nr = choose(&o, seen, nr < MAX_SEEN ? nr : MAX_SEEN, others);
		status = nr < 0 ? 1 : send_to(&seen[nr], o.text);
	}
	free(seen);
	return status;
}
