/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/trace/rules.h"

#define FILE_MAX  (1u << 20)
#define RULES_MAX 65536u

static const char *const kinds[MP_BY_MAX] = {
	[MP_BY_FUNCTION] = "function",
	[MP_BY_MAPPING] = "mapping",
	[MP_BY_FILE] = "file",
};

/* Cuts blanks off both ends. */
static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\r");
	for (n = strlen(s); n && strchr(" \t\r", s[n - 1]); n--)
		;
	s[n] = 0;
	return s;
}

static int add(struct rules *r, const struct name_rule *rule)
{
	struct name_rule *all = reallocarray(r->rules, r->nr + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	r->rules = all;
	all[r->nr++] = *rule;
	return 0;
}

/* A line without its comment and blanks. What is wrong with it, NULL: nothing. */
static const char *parse(char *line, struct name_rule *ret)
{
	char *kind = strchr(line, '='), *pattern;
	int i;

	if (!kind)
		return "no '=': NAME = function|mapping|file PATTERN";
	*kind++ = 0;
	ret->name = trim(line);
	kind = trim(kind);
	pattern = kind + strcspn(kind, " \t");
	if (*pattern)
		*pattern++ = 0;
	ret->pattern = trim(pattern);
	for (i = 0; i < MP_BY_MAX && strcmp(kind, kinds[i]); i++)
		;
	if (i == MP_BY_MAX)
		return "behind '=' comes function, mapping or file";
	ret->by = (enum mp_named_by)i;
	if (!*ret->name || strlen(ret->name) >= MP_RESOURCE_NAME)
		return "a name has 1 to 123 bytes";
	return *ret->pattern && strlen(ret->pattern) < MP_STRING_MAX ? NULL
								     : "a pattern is missing";
}

static int parse_all(struct rules *r, const char *path, char *msg, size_t msg_len)
{
	char *line, *rest = r->text;
	struct name_rule rule;
	unsigned int n = 0;
	const char *bad;
	int err = 0;

	while (!err && (line = strsep(&rest, "\n"))) {
		n++;
		line = trim(line);
		if (!*line || *line == '#')
			continue;
		bad = r->nr == RULES_MAX ? "too many rules" : parse(line, &rule);
		if (bad) {
			snprintf(msg, msg_len, "%s:%u: %s", path, n, bad);
			return -EINVAL;
		}
		err = add(r, &rule);
	}
	return err;
}

static int read_text(const char *path, char **ret)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(FILE_MAX + 1) : NULL;
	size_t n;
	int err = 0;

	if (!f)
		return -errno;
	n = text ? fread(text, 1, FILE_MAX + 1, f) : 0;
	if (!text)
		err = -ENOMEM;
	else if (ferror(f))
		err = -EIO;
	else if (n > FILE_MAX)
		err = -EFBIG;
	else if (memchr(text, 0, n))
		err = -EILSEQ;
	fclose(f);
	if (err) {
		free(text);
		return err;
	}
	text[n] = 0;
	*ret = text;
	return 0;
}

int rules_read(const char *path, struct rules *ret, char *msg, size_t msg_len)
{
	struct rules r = {0};
	int err = read_text(path, &r.text);

	if (err)
		snprintf(msg, msg_len, "%s: %s", path,
			 err == -EILSEQ ? "not a text file" : strerror(-err));
	else
		err = parse_all(&r, path, msg, msg_len);
	if (err) {
		rules_release(&r);
		return err;
	}
	*ret = r;
	return 0;
}

void rules_release(struct rules *r)
{
	free(r->rules);
	free(r->text);
	memset(r, 0, sizeof(*r));
}
