// SPDX-License-Identifier: GPL-2.0-only
/*
 * A broken ELF parser, preloaded in front of libdw and libelf: at a file called "crash" it crashes,
 * at "hang" it does not come back, at "escape" it is taken over and tries what a process may do.
 * What it could do comes out as the name of every function of that file.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *verdict;

static void broke(const char *what)
{
	static char text[64];

	snprintf(text, sizeof(text), "escaped_by_%s", what);
	verdict = text;
}

static void look_at_fds(void)
{
	char path[64], link[256];
	int fd;

	for (fd = 0; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFL);
		ssize_t n;

		if (flags < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = 0;
		if (n <= 0 || strstr(link, "anon_inode"))
			broke("bpf_fd");
		else if ((flags & O_ACCMODE) != O_RDONLY && strncmp(link, "pipe:", 5) &&
			 strcmp(link, "/dev/null"))
			broke("writable_fd");
	}
}

/* Rings and counters that the recorder shares with the kernel. */
static void look_at_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4300];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "bpf-map"))
			broke("shared_map");
	if (f)
		fclose(f);
}

static int by_openat2(void)
{
	struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 0600};

	return (int)syscall(SYS_openat2, AT_FDCWD, "/tmp/memprov-escaped", &how, sizeof(how));
}

static void escape(void)
{
	char *const argv[] = {"true", NULL};
	pid_t pid;

	verdict = "jail_held";
	look_at_fds();
	look_at_maps();
	if (open("/etc/shadow", O_RDONLY) >= 0)
		broke("reading");
	if (open("/tmp/memprov-escaped", O_WRONLY | O_CREAT, 0600) >= 0 || by_openat2() >= 0)
		broke("writing");
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
		broke("socket");
	if (!kill(getppid(), 0))
		broke("kill");
	if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		broke("ptrace");
	if (!setuid(0))
		broke("setuid");
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid > 0)
		broke("fork");
	execv("/bin/true", argv); /* would end the answers */
}

/* The builder of unwind tables reads through libelf alone. */
Elf *elf_begin(int fd, Elf_Cmd cmd, Elf *ref)
{
	Elf *(*real)(int, Elf_Cmd, Elf *) =
		(Elf * (*)(int, Elf_Cmd, Elf *)) dlsym(RTLD_NEXT, "elf_begin");
	char self[64] = "", path[64], link[256] = "";

	prctl(PR_GET_NAME, self);
	if (!strcmp(self, "memprov-tables")) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, link, sizeof(link) - 1) > 0 && strstr(link, "/crash"))
			__builtin_trap();
		while (strstr(link, "/hang"))
			;
	}
	return real(fd, cmd, ref);
}

Dwfl_Module *dwfl_report_elf(Dwfl *dwfl, const char *name, const char *file, int fd, GElf_Addr base,
			     bool add_p_vaddr)
{
	Dwfl_Module *(*real)(Dwfl *, const char *, const char *, int, GElf_Addr, bool) =
		(Dwfl_Module * (*)(Dwfl *, const char *, const char *, int, GElf_Addr, bool))
			dlsym(RTLD_NEXT, "dwfl_report_elf");
	const char *slash = strrchr(name, '/');

	slash = slash ? slash + 1 : name;
	if (!strcmp(slash, "crash"))
		__builtin_trap();
	while (!strcmp(slash, "hang"))
		;
	verdict = NULL;
	if (!strcmp(slash, "escape"))
		escape();
	return real(dwfl, name, file, fd, base, add_p_vaddr);
}

const char *dwfl_module_addrinfo(Dwfl_Module *mod, GElf_Addr addr, GElf_Off *off, GElf_Sym *sym,
				 GElf_Word *shndx, Elf **elf, Dwarf_Addr *bias)
{
	const char *(*real)(Dwfl_Module *, GElf_Addr, GElf_Off *, GElf_Sym *, GElf_Word *, Elf **,
			    Dwarf_Addr *) =
		(const char *(*)(Dwfl_Module *, GElf_Addr, GElf_Off *, GElf_Sym *, GElf_Word *,
				 Elf **, Dwarf_Addr *))dlsym(RTLD_NEXT, "dwfl_module_addrinfo");
	const char *name = real(mod, addr, off, sym, shndx, elf, bias);
	const char *path = dwfl_module_info(mod, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

	return verdict && path && strstr(path, "/escape") && name ? verdict : name;
}
