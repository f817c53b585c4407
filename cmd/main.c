/* SPDX-License-Identifier: GPL-2.0-only
 * Dispatch. The table is the list of verbs; results go to stdout, everything else to stderr. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "lib/capture/privilege.h"
#include "lib/trace/trace.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{"record", cmd_record, "record -p PID | -- CMD ARG...   [-o FILE] [-w DURATION]"},
	{"report", cmd_report, "report [FILE]   who holds the memory; --by COLUMN, --format json"},
	{"top", cmd_top,
	 "top -p PID | -- CMD ARG... | -i FILE   the same, again and again; --batch N"},
	{"diff", cmd_diff,
	 "diff [BASE NEW]  what grew; --by COLUMN, --fail-on 'resident>+10%', --format json"},
	{"mark", cmd_mark, "mark TEXT       a marker into a running recording"},
	{"features", cmd_features, "features        what this machine and this user can record"},
};

int fail(const char *verb, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "memprov: %s: ", verb);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FAILURE;
}

int fail_frames(const char *verb)
{
	char names[64];

	return fail(
		verb, "no page frame numbers: %s missing: run as root or grant it",
		privilege_names(privilege_missing(NEED_ADMIN | NEED_PTRACE), names, sizeof(names)));
}

int fail_trace(const char *verb, const char *path, int err)
{
	return fail(verb, "%s: %s", path, trace_strerror(err));
}

static int usage(FILE *out)
{
	size_t i;

	fputs("usage: memprov VERB [OPTIONS]\n", out);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(out, "  memprov %s\n", commands[i].help);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	size_t i;
	int status;

	if (argc < 2)
		return usage(stderr);
	if (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version"))
		return printf("memprov %s\n", MEMPROV_VERSION) < 0;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		status = commands[i].run(argc - 1, argv + 1);
		/* A full disk must not look like a short report. */
		if (fflush(stdout) || ferror(stdout))
			return fail(argv[1], "cannot write the result: %s", strerror(errno));
		return status;
	}
	fprintf(stderr, "memprov: no verb '%s'\n", argv[1]);
	return usage(stderr);
}
