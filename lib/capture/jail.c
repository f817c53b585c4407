/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/capture/jail.h"

#define NOBODY 65534

/* What malloc, stdio and libelf need. Everything else fails with EPERM: a parser that asks for more
 * loses a name, not the whole child. openat: without a flag that writes; openat2 hides its flags,
 * so it takes Landlock. */
static const int allowed[] = {
	/* clang-format off */
	SYS_read, SYS_pread64, SYS_write, SYS_close, SYS_fstat, SYS_newfstatat, SYS_lseek, SYS_mmap,
	SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk, SYS_readlink, SYS_readlinkat,
	SYS_fcntl, SYS_futex, SYS_getrandom, SYS_sysinfo, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
	SYS_rt_sigprocmask, SYS_clock_gettime,
	/* clang-format on */
};

#define NR_ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

static const struct {
	int resource;
	rlim_t max;
} limits[] = {
#ifndef __SANITIZE_ADDRESS__ /* whose shadow has terabytes */
	{RLIMIT_AS, 16ull << 30}, /* debug files are mapped whole */
	{RLIMIT_DATA, 2ull << 30},
#endif
	{RLIMIT_CPU, 120},	   {RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}, {RLIMIT_NPROC, 0},
};

static int by_value(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* 0, 1 and 2 become /dev/null, so that nothing a library prints lands in a file. */
static int close_others(int *keep, size_t nr)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fd;
	unsigned int from = 3;
	size_t i;

	if (null < 0)
		return -errno;
	for (fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	qsort(keep, nr, sizeof(*keep), by_value);
	for (i = 0; i < nr; i++) {
		if (keep[i] < (int)from)
			continue;
		if (keep[i] > (int)from &&
		    syscall(SYS_close_range, from, (unsigned int)keep[i] - 1, 0))
			return -errno;
		from = (unsigned int)keep[i] + 1;
	}
	return syscall(SYS_close_range, from, ~0u, 0) ? -errno : 0;
}

static int drop_user(void)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {0};

	if (geteuid() == 0 && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
			       setresuid(NOBODY, NOBODY, NOBODY)))
		return -errno;
	if (syscall(SYS_capset, &hdr, none) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return 0;
}

/* No file is made, changed or removed from now on. -errno where the kernel has no Landlock. */
static int deny_changes(void)
{
	const struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0), err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_landlock_restrict_self, fd, 0) ? -errno : 0;
	close(fd);
	return err;
}

static struct sock_filter *allow(struct sock_filter *p, int nr)
{
	*p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, 1);
	*p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return p;
}

static int filter_calls(int has_landlock)
{
	struct sock_filter code[2 * NR_ALLOWED + 16], *p = code;
	struct sock_fprog prog = {.filter = code};
	size_t i;

	*p++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, arch));
	*p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	*p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	*p++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, nr));
	for (i = 0; i < NR_ALLOWED; i++)
		p = allow(p, allowed[i]);
	if (has_landlock)
		p = allow(p, SYS_openat2);
	*p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3);
	*p++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					    offsetof(struct seccomp_data, args[2]));
	*p++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
					    O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_TMPFILE, 1,
					    0);
	*p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	*p++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	prog.len = (unsigned short)(p - code);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}

/* What the recorder shares with the kernel: rings, counters, tables. */
static int unmap_shared(void)
{
	unsigned long start, end;
	char line[4300];
	FILE *f = fopen("/proc/self/maps", "re");
	int err = 0;

	if (!f)
		return -errno;
	while (!err && fgets(line, sizeof(line), f))
		if (strstr(line, "anon_inode:bpf-map") &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			err = munmap((void *)start, end - start) ? -errno : 0;
	fclose(f);
	return err;
}

int jail_enter(int *keep, size_t nr_keep)
{
	size_t i;
	int err = unmap_shared();

	if (!err)
		err = close_others(keep, nr_keep);

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]) && !err; i++) {
		struct rlimit have, want = {limits[i].max, limits[i].max};

		if (getrlimit(limits[i].resource, &have))
			return -errno;
		if (have.rlim_max < want.rlim_max)
			want.rlim_cur = want.rlim_max = have.rlim_max;
		if (setrlimit(limits[i].resource, &want))
			err = -errno;
	}
	if (!err)
		err = drop_user();
	return err ? err : filter_calls(!deny_changes());
}
