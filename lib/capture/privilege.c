/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/capture/privilege.h"

static const struct {
	int bit, number;
	const char *name;
} table[] = {
	{NEED_BPF, CAP_BPF, "CAP_BPF"},
	{NEED_PERFMON, CAP_PERFMON, "CAP_PERFMON"},
	{NEED_PTRACE, CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
	{NEED_ADMIN, CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
};

#define NR (sizeof(table) / sizeof(table[0]))

static int has(const struct __user_cap_data_struct *data, int number)
{
	return !!(data[CAP_TO_INDEX(number)].effective & CAP_TO_MASK(number));
}

/* CAP_SYS_ADMIN stands for the two that were split off it. */
int privilege_missing(int need)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	int missing = 0;
	size_t i;

	if (syscall(SYS_capget, &hdr, data))
		return need;
	for (i = 0; i < NR; i++)
		if (!has(data, table[i].number) &&
		    !(table[i].bit & (NEED_BPF | NEED_PERFMON) && has(data, CAP_SYS_ADMIN)))
			missing |= table[i].bit;
	return missing & need;
}

const char *privilege_names(int set, char *buf, size_t len)
{
	size_t at = 0, i;

	buf[0] = 0;
	for (i = 0; i < NR && at < len; i++)
		if (set & table[i].bit)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "",
					       table[i].name);
	return buf;
}
