/* SPDX-License-Identifier: GPL-2.0-only
 * What memprov can be asked: the table is what help, mistakes and the page's SYNOPSIS show. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cmd.h"
#include "lib/text/text.h"

#define NR_VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* clang-format off */
static const struct {
	const char *name, *text;
} verbs[] = {
	{"record",
	 "memprov record -p PID[,PID] | --comm NAME | --cgroup PATH|ID|of:PID | -a | -- CMD ARG...\n"
	 "               [-o FILE] [-w DURATION] [--tree] [--max-size SIZE] [--buffer SIZE]\n"
	 "               [--ring SIZE] [--trigger EXPR]...\n"
	 "               [--user NAME] [--alloc auto|adapter|uprobe|map] [--sample-bytes N]\n"
	 "               [--min-size N] [--alloc-symbols LIST] [--access faults|ptwalk]\n"
	 "               [--every DURATION] [--names FILE] [--samples FILE] [--strict] [--dry-run]\n"
	 "               [-q] [-v]\n"},
	{"report",
	 "memprov report [-i FILE | FILE...] [--by|-s COLUMN] [--columns LIST|help]\n"
	 "               [--view growth|waste|pressure|numa] [--owner auto|alloc|fault]\n"
	 "               [--group stack|site|function|file|mapping|process|node|resource]\n"
	 "               [--names FILE] [--children] [--at TIME] [--timeline]\n"
	 "               [--filter EXPR] [--evidence exact|inferred|sampled]\n"
	 "               [--why ID|NAME] [--rows N] [--bytes] [-q] [-o OUT]\n"
	 "               [--format table|folded|json|csv|pprof|speedscope|html]\n"},
	{"top",
	 "memprov top -p PID[,PID] | --comm NAME | --cgroup PATH|ID|of:PID | -a | -i FILE | -- CMD ARG...\n"
	 "               [--tree] [--user NAME] [--names FILE] [--by|-s COLUMN] [--group KEY]\n"
	 "               [-d SECS] [--batch N] [--rows N] [--bytes] [-v]\n"},
	{"diff",
	 "memprov diff [BASE NEW] [--by|-s COLUMN] [--owner auto|alloc|fault]\n"
	 "               [--group stack|resource] [--names FILE] [--fail-on RULE]...\n"
	 "               [--rows N] [--format table|json|markdown|folded]\n"},
	{"mark",
	 "memprov mark [-p RECORDER | -o FILE] TEXT\n"},
	{"features",
	 "memprov features [--format table|json]\n"},
	{"help",
	 "memprov help [VERB]\n"},
};
/* clang-format on */

static void say(const char *verb, const char *fmt, va_list ap)
{
	char *text = NULL;

	fprintf(stderr, "memprov: %s%s", verb ? verb : "", verb ? ": " : "");
	/* Names of a target's files and processes, too. */
	if (vasprintf(&text, fmt, ap) >= 0)
		text_put(stderr, text);
	free(text);
	fputc('\n', stderr);
}

int fail(const char *verb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(verb, fmt, ap);
	va_end(ap);
	return 1;
}

int usage(FILE *f, const char *verb)
{
	size_t i;

	fputs("usage:\n", f);
	for (i = 0; i < NR_VERBS; i++)
		if (!verb || !strcmp(verb, verbs[i].name))
			fputs(verbs[i].text, f);
	return EXIT_USAGE;
}

int misuse(const char *verb, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(verb, fmt, ap);
	va_end(ap);
	return usage(stderr, verb);
}

int bad_option(const char *verb, const struct option *longs, char **argv)
{
	const char *names[64] = {0}, *word = optind > 0 ? argv[optind - 1] : NULL, *near = NULL;
	size_t i;

	for (i = 0; longs[i].name && i < sizeof(names) / sizeof(names[0]) - 1; i++)
		names[i] = longs[i].name;
	/* One that lacks its argument is among them. */
	if (word && !strncmp(word, "--", 2))
		near = text_nearest(word + 2, names);
	if (near && strcmp(near, word + 2))
		fail(verb, "did you mean --%s?", near);
	return usage(stderr, verb);
}

int misuse_verb(const char *word)
{
	const char *names[NR_VERBS + 1] = {0}, *near;
	size_t i;

	for (i = 0; i < NR_VERBS; i++)
		names[i] = verbs[i].name;
	near = text_nearest(word, names);
	return misuse(NULL, "no verb '%s'%s%s%s", word, near ? ": did you mean " : "",
		      near ? near : "", near ? "?" : "");
}

int cmd_help(int argc, char **argv)
{
	const char *verb = argc > 1 && argv[1][0] != '-' ? argv[1] : NULL;
	size_t i;

	for (i = 0; verb && i < NR_VERBS && strcmp(verb, verbs[i].name); i++)
		;
	if (verb && i == NR_VERBS)
		return misuse_verb(verb);
	usage(stdout, verb);
	if (!verb)
		puts("memprov --version; all of it is in memprov(1)");
	return 0;
}
