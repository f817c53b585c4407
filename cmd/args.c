/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cmd/args.h"
#include "cmd/cmd.h"

int parse_count(const char *text, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	return *text < '0' || *text > '9' || *end || errno || *ret > 1u << 30 ? -1 : 0;
}

static int copy_input(int to)
{
	char buf[65536];
	ssize_t n, done, got;

	while ((n = read(0, buf, sizeof(buf))) > 0) {
		for (done = 0; done < n; done += got) {
			got = write(to, buf + done, (size_t)(n - done));
			if (got < 0)
				return -errno;
		}
	}
	return n < 0 ? -errno : 0;
}

int input_open(struct input *in, const char *path, const char **ret_path)
{
	int err;

	in->fd = -1;
	*ret_path = path;
	if (strcmp(path, "-"))
		return 0;
	in->fd = memfd_create("memprov-input", MFD_CLOEXEC);
	if (in->fd < 0)
		return -errno;
	err = copy_input(in->fd);
	if (err) {
		input_close(in);
		return err;
	}
	snprintf(in->memory, sizeof(in->memory), "/proc/self/fd/%d", in->fd);
	*ret_path = in->memory;
	return 0;
}

void input_close(struct input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

int input_join(const char *path, enum owner_mode owner, struct report **ret_r)
{
	struct input in;
	int err = input_open(&in, path, &path);

	if (!err)
		err = join_file(path, owner, ret_r);
	input_close(&in);
	return err;
}

u64 parse_duration(const char *text)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"", 1e9}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
	char *end;
	double v = strtod(text, &end);
	size_t i;

	/* strtod alone would take spaces, signs, hex, inf and nan. */
	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.")] == 'x')
		return 0;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(end, units[i].name))
			return v > 0 && v * units[i].ns < 1e16 ? (u64)(v * units[i].ns) : 0;
	return 0;
}

u64 parse_size(const char *text)
{
	char *end;
	double v = strtod(text, &end);
	int shift = 0;

	if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789.")] == 'x')
		return 0;
	switch (toupper((unsigned char)*end)) {
	case 'T':
		shift += 10; /* fall through */
	case 'G':
		shift += 10; /* fall through */
	case 'M':
		shift += 10; /* fall through */
	case 'K':
		shift += 10;
		end++;
		break;
	default:
		break;
	}
	if (shift && !strcmp(end, "iB"))
		end += 2;
	else if (!strcmp(end, "B"))
		end++;
	v *= (double)(1ull << shift);
	return *end || v >= 0x1p62 ? 0 : (u64)v;
}

int names_option(const char *verb, const char *path, struct rules *ret)
{
	char msg[512];

	rules_release(ret);
	return rules_read(path, ret, msg, sizeof(msg)) ? fail(verb, "--names %s", msg) : 0;
}
