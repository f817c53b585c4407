/* SPDX-License-Identifier: GPL-2.0-only
 * Dispatch. The table is the list of verbs; results go to stdout, everything else to stderr. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "lib/capture/privilege.h"
#include "lib/trace/trace.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	/* clang-format off */
	{"record", cmd_record},
	{"report", cmd_report},
	{"top", cmd_top},
	{"diff", cmd_diff},
	{"mark", cmd_mark},
	{"features", cmd_features},
	{"help", cmd_help},
	/* clang-format on */
};

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

static int asks_help(int argc, char **argv)
{
	return argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

/* What getopt(3) says begins with argv[0]. */
static int run(size_t i, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "memprov: %s", commands[i].name);
	argv[0] = name;
	return commands[i].run(argc, argv);
}

int main(int argc, char **argv)
{
	size_t i;
	int status;

	if (argc < 2)
		return usage(stderr, NULL);
	if (asks_help(argc, argv))
		return cmd_help(1, argv);
	if (!strcmp(argv[1], "--version"))
		return printf("memprov %s\n", MEMPROV_VERSION) < 0;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		/* Elsewhere --help may be an option's argument or CMD's. */
		if (asks_help(argc - 1, argv + 1))
			status = cmd_help(2, argv);
		else
			status = run(i, argc - 1, argv + 1);
		/* A full disk must not look like a short report. */
		if (fflush(stdout) || ferror(stdout))
			return fail(commands[i].name, "cannot write the result: %s",
				    strerror(errno));
		return status;
	}
	return misuse_verb(argv[1]);
}
